"""``shardy local``."""

from __future__ import annotations

import sys
from typing import Any

import attrs
import click

from shardy_py.api.options import LocalOptions
from shardy_py.api.result import Result
from shardy_py.cli.files import print_warnings, write_output
from shardy_py.cli.origin import origin_of
from shardy_py.cli.progress import step_bar
from shardy_py.cli.registry import schedule_argument
from shardy_py.cli.session import GivenProgram
from shardy_py.errors import Diagnostic, OptionError
from shardy_py.extensions import function
from shardy_py.jax.commands.run_report import inputs_path, show_report
from shardy_py.jax.local import LocalProgram
from shardy_py.jax.report.local import local_json, print_local


def run_local_command(
    *,
    file: str,
    output: str | None,
    device: int | None,
    layout: str | None,
    schedule: str | None,
    as_json: bool,
    quiet: bool,
    as_run: bool,
    inputs: str,
    seed: int,
    compare: bool,
    tolerance: float | None,
    outputs: str | None,
    **options: Any,
) -> None:
    """Print the local program of a file, or run it; exit with 1 where a comparison fails."""
    if as_run and (device is not None or output is not None):
        other = "--device" if device is not None else "--output"
        raise OptionError(Diagnostic("option-conflict", f"--run and {other} exclude each other"))
    local_options = {item.name: options.pop(item.name) for item in attrs.fields(LocalOptions)}
    input_program = GivenProgram.of(file=file, **options)
    order = None if schedule is None else schedule_argument(schedule)
    with step_bar(1, enabled=not quiet) as steps:
        result = input_program.propagate(schedule=order, explicit_collectives=True, on_progress=steps.on_progress)
        steps.start("Writing the program of a device")
        local = result.local(**local_options)
    warnings = (*result.warnings, *local.warnings)
    print_warnings(warnings)
    if as_run:
        source = input_program.module if compare else None
        sys.exit(
            _run(result, local, input_program, source, inputs, seed, tolerance, outputs, as_json=as_json, quiet=quiet)
        )
    memory = (
        None
        if layout is None
        else function("report_memory")(local.shard_program, local.shard_program.functions["main"], layout)
    )
    module = local.module if device is None else local.per_device(device)
    text = local.form.text(module)
    if output is not None:
        write_output(output, local.form.file(module, output))
    if as_json:
        click.echo(local_json(local, origin=origin_of(input_program), warnings=warnings, memory=memory))
    elif output is None:
        click.echo(text, nl=not text.endswith("\n"))
    if not quiet and not as_json:
        print_local(local, file=sys.stderr)
        if memory is not None:
            function("print_memory")(memory, file=sys.stderr)


def _run(
    result: Result,
    local: LocalProgram,
    program: GivenProgram,
    source: Any,
    inputs: str,
    seed: int,
    tolerance: float | None,
    outputs: str | None,
    *,
    as_json: bool,
    quiet: bool,
) -> int:
    """Run a local program, print its results, and return the exit code."""
    from shardy_py.jax.local.running import run_local
    from shardy_py.jax.npz import outputs_file

    path = inputs_path(inputs)
    with step_bar(1 if source is None else 2, enabled=not quiet) as steps:
        report = run_local(result, local, source, inputs=path, seed=seed, tolerance=tolerance, on_step=steps.start)
    if outputs is not None:
        write_output(outputs, outputs_file(report.arrays))
    warnings = (*result.warnings, *local.warnings)
    return show_report(report, origin=origin_of(program), warnings=warnings, as_json=as_json)
