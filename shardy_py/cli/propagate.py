"""``shardy propagate``."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import click

from shardy_py.api.memory import MemoryReport, report_memory
from shardy_py.api.propagate import propagate
from shardy_py.api.result import Result
from shardy_py.api.specs import parse_spec
from shardy_py.cli.files import read_input, write_atomically
from shardy_py.cli.forms import form_text
from shardy_py.cli.registry import make_registry
from shardy_py.cli.schedule import schedule_argument
from shardy_py.errors import Diagnostic, OptionError
from shardy_py.integers import parse_integer
from shardy_py.report.copies import print_copies
from shardy_py.report.data import report_json
from shardy_py.report.graph import graph_suffix, graph_text
from shardy_py.report.memory import print_memory
from shardy_py.report.tables import print_report

LABELS = {
    "import": "Reading the module",
    "prepare": "Preparing",
    "compile": "Compiling",
    "solve": "Propagating",
    "finish": "Finishing",
    "write": "Writing shardings back",
}


def run_propagate(
    *,
    file: str,
    untrusted: bool,
    output: str | None,
    mesh: str | None,
    in_shardings: Iterable[str],
    out_shardings: Iterable[str],
    strategy: Any,
    schedule: str | None,
    strict: bool,
    keep_sharding_rules: bool,
    dedup_functions_fully: bool,
    inline_calls: bool,
    explicit_collectives: bool,
    target: str | None,
    dump_dir: str | None,
    stubs: str | None,
    graph: str | None,
    copies: bool,
    layout: str | None,
    as_json: bool,
    quiet: bool,
    **registry_options: Any,
) -> None:
    """Propagate one file; write nothing unless all of it succeeded."""
    if graph is not None:
        graph_suffix(graph)
    sizes = parse_mesh_sizes(mesh) if mesh is not None else None
    given, wanted = parse_in_shardings(in_shardings), parse_out_shardings(out_shardings)
    registry = make_registry(**registry_options)
    with _progress(enabled=not quiet) as on_stage:
        result = propagate(
            read_input(file, untrusted=untrusted, registry=registry),
            sizes,
            in_shardings=given,
            out_shardings=wanted,
            strategy=strategy,
            schedule=None if schedule is None else schedule_argument(schedule),
            strict=strict,
            keep_sharding_rules=keep_sharding_rules,
            dedup_functions_fully=dedup_functions_fully,
            inline_calls=inline_calls,
            explicit_collectives=explicit_collectives,
            record_copies=copies,
            dump_directory=dump_dir,
            registry=registry,
            on_stage=on_stage,
        )
        text = form_text(result, target)
    for warning in result.warnings:
        click.echo(warning.show("warning"), err=True)
    memory = None if layout is None else report_memory(result.program, result.main, layout)
    if graph is not None:
        write_atomically(graph, graph_text(result.to_networkx(), graph))
    _write(result, text, output=output, stubs=stubs, as_json=as_json, memory=memory)
    if not quiet and not as_json:
        print_report(result, file=sys.stderr)
        if result.copies is not None:
            print_copies(result.copies, file=sys.stderr)
        if memory is not None:
            print_memory(memory, file=sys.stderr)


def parse_mesh_sizes(text: str) -> dict[str, int]:
    """Return the axis sizes of ``data=4,model=2``.

    Raises:
        OptionError: it has another form.
    """
    sizes: dict[str, int] = {}
    for part in text.split(","):
        name, _, size = (item.strip() for item in part.partition("="))
        number = parse_integer(size)
        if not name or number is None or name in sizes:
            raise OptionError(
                Diagnostic("invalid-mesh", f"--mesh {text}: {part!r} is not NAME=SIZE", hint="--mesh data=4,model=2")
            )
        sizes[name] = number
    return sizes


def parse_in_shardings(texts: Iterable[str]) -> dict[int | str, Any]:
    """Return the shardings of arguments that a command line gives.

    Raises:
        ShardyError: one has another form than ``arg0=data,None``.
    """
    return dict(_name_and_spec(text, "in-sharding", "arg0") for text in texts)


def parse_out_shardings(texts: Iterable[str]) -> dict[int | str, Any]:
    """Return the shardings of results that a command line gives.

    Raises:
        ShardyError: one has another form than ``result0=data,None``.
    """
    return dict(_name_and_spec(text, "out-sharding", "result0") for text in texts)


def _name_and_spec(text: str, option: str, example: str) -> tuple[str, Any]:
    name, equals, spec = text.partition("=")
    if not equals or not name.strip():
        kind = example.rstrip("0").upper()
        raise OptionError(
            Diagnostic(
                f"invalid-{option}s",
                f"--{option} {text}: this is not {'ARGUMENT' if kind == 'ARG' else kind}=SHARDING",
                hint=f"--{option} {example}=data,None",
            )
        )
    return name.strip(), parse_spec(spec)


def _write(
    result: Result, text: str, *, output: str | None, stubs: str | None, as_json: bool, memory: MemoryReport | None
) -> None:
    if stubs:
        write_atomically(stubs, result.coverage.stubs)
    if output:
        write_atomically(output, text)
    if as_json:
        click.echo(report_json(result, memory=memory))
    elif not output:
        click.echo(text, nl=not text.endswith("\n"))


@contextmanager
def _progress(*, enabled: bool) -> Iterator[Callable[[str], None]]:
    """Show the stage that runs, on a terminal only."""
    if not enabled or not sys.stderr.isatty():
        yield lambda stage: None
        return
    from rich.console import Console

    with Console(stderr=True).status("") as status:
        yield lambda stage: status.update(LABELS.get(stage, stage))
