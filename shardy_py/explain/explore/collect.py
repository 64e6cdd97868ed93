"""Data of a page: a program with its shardings, the reasons for them and their costs, as plain lists."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from attrs import evolve

from shardy_py.api.main_function import find_main
from shardy_py.cost.communications import name_transfers
from shardy_py.cost.machines.toml import MachineLike
from shardy_py.explain.explain_reshard import ReshardExplainer
from shardy_py.explain.explore.page import StepCallback, tell_nothing
from shardy_py.explain.explore.program_rows import Naming, ProgramRows
from shardy_py.explain.explore.proposals import find_proposals
from shardy_py.explain.explore.replay import Replay, reason_texts
from shardy_py.explain.explore.runs import RunRows
from shardy_py.explain.explore.variants import common_slots, rows_of_variant, with_common_slots
from shardy_py.propagation.trace import VisitLog
from shardy_py.report.axis_colors import axis_hues
from shardy_py.schedule.from_options import ScheduleLike
from shardy_py.sharding.rule import OpShardingRule
from shardy_py.trace.original_names import GivenNames
from shardy_py.trace.trace import Trace
from shardy_py.values import frozen

SCHEMA, VERSION = "shardy-explore", 1


@frozen(eq=False)
class Order:
    """An order that a page shows.

    Args:
        name: Its name.
        schedule: The schedule; None for the default.
    """

    name: str
    schedule: ScheduleLike | None = None


def collect(
    explainer: ReshardExplainer,
    orders: Sequence[Order],
    *,
    title: str,
    machine: MachineLike | None = None,
    proposals: int = 0,
    variants: Sequence[tuple[str, ReshardExplainer]] = (),
    step: StepCallback = tell_nothing,
) -> dict[str, Any]:
    """Return the data of a page.

    Args:
        explainer: The explainer of the first order.
        orders: The orders: one, or two to compare.
        title: The title.
        machine: What the program runs on; without one there are no times.
        proposals: For how many transfers proposals are tried.
        variants: The same program with other shardings: names with explainers.
        step: Called as each order but the first, each transfer, and the data of the page start.
    """
    session = explainer.session
    evaluations = [session.price(explainer.solution, machine)]
    traces = [explainer.trace]
    for order in orders[1:]:
        step(f"Propagating under {order.name}")
        traces.append(_trace(explainer, order.schedule))
        evaluations.append(session.price(traces[-1].solution, machine))
    names = session.names or GivenNames.of(session.program, session.main)
    naming = Naming(names.names, {**explainer.labels.of_slot, **_aliases(explainer)}, session.problem.slot_of)
    main = find_main(evaluations[0].program)
    rules = _rules(explainer)
    rows = ProgramRows.of(evaluations[0].program, main, session.registry, naming, rules)
    shown = set(rows.values["slot"])
    runs = []
    costs = [name_transfers(session, evaluation) for evaluation in evaluations]
    tried = find_proposals(explainer, costs[0], most=proposals, machine=machine, step=step)
    step("Writing the page")
    for order, trace, evaluation, cost in zip(orders, traces, evaluations, costs, strict=True):
        run = RunRows(rows, evaluation, cost, session.registry).to_json()
        replay = Replay(trace, rows.tables, rows.strings, rows.row_of, shown.__contains__).to_json()
        runs.append({"name": order.name, **run, "replay": replay})
    slots = [explainer.labels.value(slot) for slot in range(len(session.problem.slot_values))]
    runs.extend(_variant_run(name, variant, rows, slots, machine) for name, variant in variants)
    return {
        "schema": SCHEMA,
        "version": VERSION,
        "title": title,
        "machine": evaluations[0].cost.machine,
        "ops": {**rows.ops.to_json(), **_rule_numbers(rules, rows)},
        "values": rows.values.to_json(),
        "groups": rows.groups.to_json(),
        "slots": [rows.strings(name) for name in slots],
        "reasons": reason_texts(),
        "proposals": tried,
        "runs": runs,
        **rows.tables.to_json(),
        "hues": axis_hues(axis.name for mesh in evaluations[0].program.meshes.values() for axis in mesh.axes),
        "strings": list(rows.strings.numbers),
    }


def _variant_run(
    name: str, explainer: ReshardExplainer, rows: ProgramRows, slots: list[str], machine: MachineLike | None
) -> dict[str, Any]:
    """Return the run of a variant; slots that it has besides are added."""
    session = explainer.session
    evaluation = session.price(explainer.solution, machine)
    variant_rows = rows_of_variant(name, rows, evaluation.program)
    numbers = common_slots(rows, variant_rows, explainer, slots)
    shown = set(variant_rows.values["slot"])
    run = RunRows(variant_rows, evaluation, name_transfers(session, evaluation), session.registry).to_json()
    replay = Replay(
        explainer.trace, rows.tables, rows.strings, variant_rows.row_of, lambda slot: numbers[slot] in shown
    ).to_json()
    return {"name": name, **run, "replay": with_common_slots(replay, numbers, len(slots))}


def _aliases(explainer: ReshardExplainer) -> dict[int, str]:
    """Return the user's own names of arguments and results, by slot."""
    labels = explainer.labels
    return {slot: labels.value(slot) for slot in labels.aliases.values()}


def _trace(explainer: ReshardExplainer, schedule: ScheduleLike | None) -> Trace:
    """Return the trace of another order on the same program."""
    session, log = explainer.session, VisitLog()
    solution = session.solve(schedule, log=log)
    return evolve(explainer.trace, log=log, solution=solution, schedule=session.schedule(schedule))


def _rules(explainer: ReshardExplainer) -> dict[int, OpShardingRule]:
    """Return the rules of ops by their ids."""
    problem = explainer.session.problem
    pairs = zip(problem.step_ops, problem.step_rules, strict=True)
    return {op.id: rule for op, rule in pairs if rule is not None}


def _rule_numbers(rules: Mapping[int, OpShardingRule], rows: ProgramRows) -> dict[str, Any]:
    """Return the rule of each row, as the number of its text; -1 for none."""
    texts: dict[OpShardingRule, int] = {}
    numbers = [-1] * len(rows.ops)
    for op, rule in rules.items():
        row = rows.row_of.get(op)
        if row is not None:
            if rule not in texts:
                texts[rule] = rows.strings(str(rule))
            numbers[row] = texts[rule]
    return {"rule": numbers}
