"""``shardy run``: all the work is done in a process of its own, since XLA ends the process where it gives up."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from shardy_py.cli.child import ask_child
from shardy_py.cli.files import print_warnings, write_output
from shardy_py.cli.origin import origin_of
from shardy_py.cli.progress import ShowProgress, progress_bar, show_nothing
from shardy_py.cli.registry import schedule_argument
from shardy_py.cli.session import GivenProgram
from shardy_py.errors import Diagnostic, ShardyError
from shardy_py.jax.commands.run_report import inputs_path, show_report
from shardy_py.jax.result_methods import Partitioner
from shardy_py.jax.run_report import RunReport
from shardy_py.values import frozen


@frozen
class RunRequest:
    """A request to the other process.

    Args:
        program: The program, and how it is propagated.
        schedule: The order of ops, or None.
        devices: How many host devices there are; None for as many as the mesh has.
        platform: What JAX calls the devices.
        partitioner: What decides how data moves; None for the default.
        inputs: The file with the inputs, or None for random ones.
        seed: The seed of random inputs.
        compare: Whether to run the program without shardings, too.
        tolerance: The largest relative difference of floats; None for that of the dtype.
        outputs: Whether the results are to be returned as a file.
    """

    program: GivenProgram
    schedule: Any
    devices: int | None
    platform: str
    partitioner: Partitioner | None
    inputs: Path | None
    seed: int
    compare: bool
    tolerance: float | None
    outputs: bool


@frozen
class RunAnswer:
    """An answer of the other process.

    Args:
        report: What the run gave; None where there is an error.
        error: The error.
        outputs: The results as an ``.npz`` file, if it was asked for.
        warnings: What propagation warned of.
    """

    report: RunReport | None = None
    error: ShardyError | None = None
    outputs: bytes = b""
    warnings: tuple[Diagnostic, ...] = ()


def run_run(
    *,
    file: str,
    devices: int | None,
    inputs: str,
    seed: int,
    compare: bool,
    tolerance: float | None,
    outputs: str | None,
    schedule: str | None,
    platform: str,
    partitioner: Partitioner | None,
    timeout: float,
    as_json: bool,
    **session_options: Any,
) -> None:
    """Run one file; write nothing unless all of it succeeded; exit with 1 where a comparison fails."""
    request = RunRequest(
        GivenProgram.of(file=file, **session_options),
        None if schedule is None else schedule_argument(schedule),
        devices,
        platform,
        partitioner,
        inputs_path(inputs),
        seed,
        compare,
        tolerance,
        outputs is not None,
    )
    with progress_bar("") as show:
        answer = run_in_child(request, timeout=timeout, show=show)
    if answer.error is not None:
        raise answer.error
    report = answer.report
    assert report is not None
    print_warnings(answer.warnings)
    if outputs is not None:
        write_output(outputs, answer.outputs)
    sys.exit(show_report(report, origin=origin_of(request.program), warnings=answer.warnings, as_json=as_json))


def run_in_child(request: RunRequest, *, timeout: float, show: ShowProgress = show_nothing) -> RunAnswer:
    """Return the answer of another process to a request.

    Raises:
        UnsupportedError: the process ended without an answer, or took too long.
    """
    answer: RunAnswer = ask_child("shardy_py.jax.commands.run_worker", request, timeout=timeout, show=show)
    return answer
