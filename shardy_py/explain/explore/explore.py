"""Pages of programs: propagate under one order or two, and collect what a page shows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from shardy_py.api.keywords import keywords
from shardy_py.api.options import ProgramInput, SessionArguments
from shardy_py.cost.machines.toml import MachineLike
from shardy_py.cost.reopen import session_arguments
from shardy_py.cost.sweeps.comparison import Comparison
from shardy_py.explain.explain_reshard import ReshardExplainer
from shardy_py.explain.explore.collect import Order, collect
from shardy_py.explain.explore.page import Page, StepCallback, tell_nothing
from shardy_py.explain.explore.variants import Variant
from shardy_py.schedule.from_options import ScheduleLike
from shardy_py.values import frozen


@frozen(kw_only=True)
class ExploreOptions:
    """Options of a page.

    Args:
        schedule: The order of ops; None for the default.
        against: Another order, to show beside the first; None for none.
        variants: The same program with other shardings, such as plans, to show beside, under the first order.
        machine: What the program runs on: a machine, its name, or a TOML file; without one there are no times.
        proposals: For how many transfers other annotations are tried, those that send most first; each trial takes
            as long as propagating.
        sweep: Orders to show by bytes and memory, as `compare_schedules` compares them.
        title: The title; by default the name of the file.
        on_step: Called with what is done next, as each of the `step_count` steps starts.
    """

    schedule: ScheduleLike | None = None
    against: ScheduleLike | None = None
    variants: Sequence[Variant] = ()
    machine: MachineLike | None = None
    proposals: int = 3
    sweep: Comparison | None = None
    title: str = ""
    on_step: StepCallback | None = None

    @property
    def step_count(self) -> int:
        """The number of steps of a page: each order, the proposals for each transfer, and to write the page."""
        return 1 + (self.against is not None) + len(self.variants) + self.proposals + 1


def explore(session_arguments: SessionArguments, options: ExploreOptions | None = None) -> Page:
    """Return the page of a program.

    Args:
        session_arguments: The program, with the options of its propagation.
        options: The options of the page.

    Raises:
        ShardyError: the program or an option is not valid.
    """
    chosen = options or ExploreOptions()
    arguments = {**keywords(session_arguments), "keep_names": True}
    del arguments["on_given"]
    step = chosen.on_step or tell_nothing
    step("Propagating")
    explainer = ReshardExplainer(**arguments, schedule=chosen.schedule)
    variants = []
    for variant in chosen.variants:
        step(f"Propagating {variant.name}")
        variant_arguments = {**arguments, "module": variant.module, "in_shardings": None, "out_shardings": None}
        variants.append((variant.name, ReshardExplainer(**variant_arguments, schedule=chosen.schedule)))
    data = collect(
        explainer,
        _orders(chosen),
        title=chosen.title or _title(session_arguments),
        machine=chosen.machine,
        proposals=chosen.proposals,
        variants=variants,
        step=step,
    )
    shown = data if chosen.sweep is None else {**data, "sweep": _sweep_data(chosen.sweep)}
    session = explainer.session
    schedules = [item for item in (chosen.schedule, chosen.against) if item is not None]
    unknown = session.unknown_op_names(*schedules) if schedules else ()
    return Page(shown, (*session.warnings, *unknown))


def explore_again(program_input: ProgramInput, options: ExploreOptions) -> Page:
    """Return the page of a program that was propagated before.

    Args:
        program_input: The arguments of `propagate`.
        options: The options of the page.
    """
    return explore(session_arguments(program_input), options)


def _orders(options: ExploreOptions) -> Sequence[Order]:
    first = Order(_name(options.schedule, "first order"), options.schedule)
    if options.against is None:
        return (first,)
    second = Order(_name(options.against, "second order"), options.against)
    return (first, second)


def _name(schedule: ScheduleLike | None, otherwise: str) -> str:
    if schedule is None:
        return "default"
    return str(schedule) if isinstance(schedule, (str, Path)) else otherwise


def _title(arguments: ProgramInput) -> str:
    return arguments.module.name if isinstance(arguments.module, Path) else "program"


def _sweep_data(comparison: Comparison) -> dict[str, Any]:
    """Return the orders of a sweep, the best first."""
    rows = [
        {
            "name": row.name,
            "bytes": row.communication_bytes,
            "memory": row.peak_bytes,
            "seconds": row.seconds,
            "changed": row.values_changed,
        }
        for row in comparison.rows
    ]
    return {"first": comparison.first, "rows": rows}
