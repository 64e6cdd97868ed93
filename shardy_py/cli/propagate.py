"""``shardy propagate``."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from shardy_py.api.native_file import native_file
from shardy_py.api.result import Result
from shardy_py.cli.files import print_warnings, write_output
from shardy_py.cli.progress import step_bar
from shardy_py.cli.registry import schedule_argument
from shardy_py.cli.session import GivenProgram, take_options
from shardy_py.errors import Diagnostic
from shardy_py.extensions import function
from shardy_py.report.summary import print_report

if TYPE_CHECKING:
    from shardy_py.cost.memory import MemoryReport


def run_propagate(
    *,
    output: str | None,
    target: str | None,
    stubs: str | None,
    plan: str | None,
    graph: str | None,
    layout: str | None,
    schedule: str | None,
    as_json: bool,
    quiet: bool,
    **options: Any,
) -> None:
    """Propagate one file; write nothing unless all of it succeeded."""
    if graph is not None:
        from shardy_py.report.graph import graph_suffix, graph_text

        graph_suffix(graph)
    more = take_options(options)
    program = GivenProgram.of(**options)
    with step_bar(0, enabled=not quiet) as steps:
        order = None if schedule is None else schedule_argument(schedule)
        result = program.propagate(schedule=order, on_progress=steps.on_progress, **more)
        text = form_text(result, target)
    print_warnings(result.warnings)
    memory = None if layout is None else result.memory(layout)
    if plan is not None:
        from shardy_py.report.data import plan_json

        not_planned: list[Diagnostic] = []
        write_output(plan, plan_json(result, warnings=not_planned))
        print_warnings(not_planned)
    if graph is not None:
        write_output(graph, graph_text(result.to_networkx(), graph))
    content = text if target is not None or output is None else native_file(result, output)
    _write(program, result, text, content, output=output, stubs=stubs, as_json=as_json, memory=memory)
    if not quiet and not as_json:
        _print_reports(result, text, memory)


def form_text(result: Result, target: str | None) -> str:
    """Return the text of the module in the form for a compiler, or as propagation leaves it."""
    if target is None:
        return result.text
    warnings: list[Diagnostic] = []
    module = result.for_xla(warnings=warnings) if target == "xla" else result.for_gspmd(warnings=warnings)
    print_warnings(warnings)
    return str(module)


def _print_reports(result: Result, text: str, memory: MemoryReport | None) -> None:
    print_report(result, text=text, file=sys.stderr)
    if result.copies is not None:
        from shardy_py.report.tables import print_copies

        print_copies(result.copies, file=sys.stderr)
    if memory is not None:
        function("print_memory")(memory, file=sys.stderr)


def _write(
    program: GivenProgram,
    result: Result,
    text: str,
    content: str | bytes,
    *,
    output: str | None,
    stubs: str | None,
    as_json: bool,
    memory: MemoryReport | None,
) -> None:
    if stubs:
        write_output(stubs, result.coverage.stubs)
    if output:
        write_output(output, content)
    if as_json:
        from shardy_py.cli.origin import origin_of
        from shardy_py.report.data import report_json

        click.echo(report_json(result, text=text, memory=memory, origin=origin_of(program)))
    elif not output:
        click.echo(text, nl=not text.endswith("\n"))
