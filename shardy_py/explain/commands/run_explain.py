"""``shardy explain``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from shardy_py.api.keywords import keywords
from shardy_py.api.result import Result
from shardy_py.cli.files import echo_report, print_warnings
from shardy_py.cli.progress import progress_bar, step_bar
from shardy_py.cli.registry import schedule_argument
from shardy_py.cli.session import GivenProgram
from shardy_py.cost.result_cost import local_program
from shardy_py.errors import Diagnostic, OptionError, ShardyError
from shardy_py.explain.answer.explanations import OpExplanation, ValueExplanation
from shardy_py.explain.explain_reshard import ReshardExplainer
from shardy_py.explain.reports import explanation_json, explanations_json, print_reshard
from shardy_py.ir.interfaces.communication import CommunicationChange


def run_explain(
    *,
    value: str | None,
    dim: int | None,
    op: str | None,
    reshard: int | None,
    list_reshards: bool,
    unsettled: bool,
    limit: int,
    schedule: str | None,
    names: Any,
    as_json: bool,
    **session_options: Any,
) -> None:
    """Print one explanation."""
    arguments = {"--value": value, "--op": op, "--reshard": reshard, "--reshards": list_reshards or None}
    arguments["--unsettled"] = unsettled or None
    requested = [name for name, argument in arguments.items() if argument is not None]
    if len(requested) != 1:
        message = f"{' and '.join(requested)} exclude each other" if requested else "there is nothing to explain"
        hint = "give one of --value, --op, --reshard, --reshards and --unsettled"
        raise OptionError(Diagnostic("option-conflict", message, hint=hint))
    if dim is not None and value is None:
        raise OptionError(Diagnostic("option-conflict", "--dim belongs to --value", hint="give --value, too"))
    program = GivenProgram.of(**session_options)
    order = None if schedule is None else schedule_argument(schedule)
    if unsettled:
        places = _run(program, order).explainer.unsettled(names=names)
        lines_of_places = "\n".join(map(str, places)) or "everything is settled"
        _print(lines_of_places, explanations_json(places) if as_json else None)
        return
    if reshard is None and not list_reshards:
        result = _run(program, order)
        explanation = _explain_run(result, value=value, dim=dim, op=op, names=names)
        _print(str(explanation), explanation_json(explanation, warnings=result.warnings) if as_json else None)
        return
    if names != "input":
        message = "reshards are explained in the names of the given module"
        raise OptionError(Diagnostic("option-conflict", message, hint="leave --names away"))
    with step_bar(1) as steps:
        steps.start("Propagating")
        explainer = _explainer(program, order)
        explainer.changes = _changes(program, order)
    session = explainer.session
    warnings = (*session.warnings, *(() if order is None else session.unknown_op_names(order)))
    print_warnings(warnings)
    if reshard is None:
        lines = explainer.lines()
        changes = [f"in the local program: {line}" for line in explainer.change_lines()]
        text = "\n".join([*map(str, lines), *changes]) or "no reshards"
        _print(text, explanations_json(lines) if as_json else None)
        return
    with progress_bar("Trying annotations") as show:
        why = explainer.explain(reshard, limit=limit, on_trial=show)
    if as_json:
        click.echo(explanation_json(why, warnings=warnings))
    else:
        print_reshard(why)


def _print(text: str, data: str | None) -> None:
    """Print a report, or the data in its place."""
    if data is None:
        echo_report(text)
    else:
        click.echo(data)


def _explainer(program: GivenProgram, schedule: Any) -> ReshardExplainer:
    return ReshardExplainer(**keywords(program.input), **program.options.run_options(), schedule=schedule)


def _changes(program: GivenProgram, schedule: Any) -> Sequence[CommunicationChange]:
    """Return what communication passes change in the local program; nothing where there is none."""
    local = local_program(program.propagate(schedule=schedule))
    return () if isinstance(local, ShardyError) else local.communication


def _run(program: GivenProgram, schedule: Any) -> Result:
    with step_bar(0) as steps:
        result = program.propagate(schedule=schedule, trace=True, on_progress=steps.on_progress)
    print_warnings(result.warnings)
    return result


def _explain_run(
    result: Result, *, value: str | None, dim: int | None, op: str | None, names: Any
) -> ValueExplanation | OpExplanation:
    if value is not None:
        return result.explain(value, dim, names=names)
    assert op is not None, "one of both was asked for"
    return result.explain_op(op, names=names)
