"""``shardy cost``."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from typing import Any

import click
from attrs import evolve

from shardy_py.cli.files import echo_report, print_warnings
from shardy_py.cli.origin import origin_of
from shardy_py.cli.progress import progress_bar, step_bar
from shardy_py.cli.registry import schedule_argument
from shardy_py.cli.session import GivenProgram
from shardy_py.cost.against_xla import XlaComparison
from shardy_py.cost.commands.against_jit import price_against_jit
from shardy_py.cost.commands.against_xla import xla_figures
from shardy_py.cost.communications import name_collectives, name_transfers
from shardy_py.cost.estimates import Cost
from shardy_py.cost.local_cost import add_reason, explicit_setting
from shardy_py.cost.machines.toml import get_machine, machine_names
from shardy_py.cost.priced_input import PRICED_LIKE_JIT, priced_input
from shardy_py.cost.report.against_xla import against_xla_json, print_against_xla
from shardy_py.cost.report.cost import cost_json, print_cost, print_expressions
from shardy_py.cost.result_cost import count_result, local_program
from shardy_py.errors import Diagnostic, OptionError, ShardyError
from shardy_py.report.data import record_json

HOST_PROFILE = "xla-cpu"
"""The profile of XLA for host devices."""


def run_cost(
    *,
    machine: str | None,
    profile: str | None,
    axes: tuple[str, ...],
    schedule: str | None,
    layout: str | None,
    top: int,
    as_json: bool,
    transfers: bool,
    as_local: bool,
    partitioner: str | None,
    ops: bool,
    against_xla: bool,
    against_jit: bool,
    timeout: float,
    **session_options: Any,
) -> None:
    """Print what a program costs on a machine."""
    resolved_machine = None if machine is None else get_machine(machine)
    if against_xla or (against_jit and resolved_machine is None):
        profile = profile or HOST_PROFILE
    links = parse_axis_links(axes)
    program = GivenProgram.of(**session_options)
    chosen = None if schedule is None else schedule_argument(schedule)
    setting = {"axes": links, "layout": layout, "profile": profile}
    if resolved_machine is None and not against_xla and not against_jit:
        _print_expressions(program, chosen, as_json=as_json)
        return
    if partitioner == "xla" or against_xla or against_jit:
        cost, warnings = _estimate(program, chosen, resolved_machine, setting)
    else:
        cost, warnings = _count(program, chosen, resolved_machine, setting, is_strict=as_local)
    print_warnings(warnings)
    if against_xla:
        with progress_bar("") as show:
            figures = xla_figures(program, chosen, timeout=timeout, show=show)
        compared = XlaComparison(cost, figures)
        if as_json:
            text = against_xla_json(compared, transfers=transfers, origin=origin_of(program), warnings=warnings)
            click.echo(text)
        else:
            print_against_xla(compared, file=sys.stdout)
    elif against_jit:
        with progress_bar("") as show:
            priced = price_against_jit(program, chosen, cost, resolved_machine, setting, timeout=timeout, show=show)
        echo_report(json.dumps(priced.to_json(), indent=2) if as_json else str(priced))
    elif as_json:
        click.echo(cost_json(cost, transfers=transfers, ops=ops, origin=origin_of(program), warnings=warnings))
    else:
        print_cost(cost, top=top, file=sys.stdout)


def _print_expressions(program: GivenProgram, schedule: Any, *, as_json: bool) -> None:
    """Print the cost of a program with unknown sizes, which no machine is needed for.

    Raises:
        OptionError: all sizes are known.
    """
    from shardy_py.cost.expressions import cost_expressions, has_unknown_sizes

    result = program.propagate(schedule=schedule)
    if not has_unknown_sizes(result):
        hint = f"give one of {', '.join(machine_names())}, or a file"
        raise OptionError(Diagnostic("no-machine", "--machine is missing", hint=hint))
    with progress_bar("Counting") as show:
        expressions = cost_expressions(result, show)
    print_warnings(result.warnings)
    if as_json:
        click.echo(record_json(expressions.to_json(), origin_of(program), warnings=result.warnings))
    else:
        print_expressions(expressions, file=sys.stdout)


def _estimate(
    program: GivenProgram, schedule: Any, machine: Any, setting: dict[str, Any]
) -> tuple[Cost, list[Diagnostic]]:
    """Return the cost of a program under a schedule, estimated from shardings, and what it warns of."""
    with step_bar(3) as steps:
        steps.start("Reading the module, and preparing")
        priced = evolve(program, input=priced_input(program.input, machine, setting["profile"]))
        session = priced.open(keep_names=True)
        is_other = priced.input is not program.input and session.like == "jit"
        noted = [Diagnostic("priced-like-jit", PRICED_LIKE_JIT)] if is_other else []
        warnings = [*noted, *session.warnings, *(() if schedule is None else session.unknown_op_names(schedule))]
        steps.start("Propagating, and estimating")
        evaluation = session.evaluate(schedule, machine, partitioner="xla", **setting)
        steps.start("Naming transfers")
        return name_transfers(session, evaluation), warnings


def _count(
    program: GivenProgram, schedule: Any, machine: Any, setting: dict[str, Any], *, is_strict: bool
) -> tuple[Cost, list[Diagnostic]]:
    """Return the cost of the local program, or an estimate that says why there is none, and what it warns of."""
    with step_bar(3) as steps:
        result = program.propagate(schedule=schedule, on_progress=steps.on_progress)
        steps.start("Writing the program of a device")
        local = local_program(result)
        if isinstance(local, ShardyError):
            if is_strict:
                raise local
            cost, warnings = _estimate(program, schedule, machine, explicit_setting(machine, setting))
            return add_reason(cost, local), warnings
        steps.start("Counting")
        cost = count_result(result, local, machine, setting)
        steps.start("Naming transfers")
        session = program.open(keep_names=True)
        return name_collectives(session, session.solve(schedule), cost), [*result.warnings, *local.warnings]


def parse_axis_links(texts: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Return the links of the axes that ``data=x`` and ``model=y,z`` give.

    Raises:
        OptionError: one has another form, or an axis is given twice.
    """
    result: dict[str, tuple[str, ...]] = {}
    for text in texts:
        axis, equals, names = text.partition("=")
        links = tuple(name.strip() for name in names.split(","))
        if not equals or not axis.strip() or not all(links) or axis.strip() in result:
            message = f"--axis {text}: this is not AXIS=LINK,.. for one more axis"
            raise OptionError(Diagnostic("invalid-axis", message, hint="--axis data=x --axis model=y,z"))
        result[axis.strip()] = links
    return result
