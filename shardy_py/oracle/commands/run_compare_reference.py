"""``shardy compare-reference``."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from shardy_py.cli.files import echo_report, read_input
from shardy_py.cli.progress import step_bar
from shardy_py.errors import Diagnostic, ShardyError, UnsupportedError
from shardy_py.frontends.mlir import print_module, to_module
from shardy_py.frontends.select import bundled_frontend
from shardy_py.oracle.compare import compare
from shardy_py.oracle.conformance import run
from shardy_py.oracle.reference import Reference, ReferenceOutcome
from shardy_py.transforms.pass_names import parse_pipeline
from shardy_py.transforms.prepare.inline_calls import InlineCallsPass


def run_compare_reference(
    *, file: str, untrusted: bool, pipeline: str, inline_calls: bool, limit: int, timeout: float
) -> None:
    """Print how the results compare; exit with 1 where they differ."""
    # The pipeline is checked before the reference starts: one it does not have is no difference.
    parse_pipeline(pipeline)
    if bundled_frontend("torch").accepts(Path(file)):
        message = "a program of PyTorch is no MLIR module, which is all that the reference reads"
        hint = "give a module of StableHLO; `shardy run FILE --compare` compares with the exported program"
        raise UnsupportedError(Diagnostic("not-mlir", message, file, hint=hint))
    with step_bar(4) as steps:
        steps.start("Reading the module")
        text = print_module(to_module(read_input(file, untrusted=untrusted)))
        if inline_calls:
            text = run(text, InlineCallsPass.name)
        steps.start("Running the passes of the reference")
        with Reference(timeout=timeout) as reference:
            theirs = reference.run(text, pipeline)
        steps.start("Running the passes here")
        ours = _run_here(text, pipeline)
        comparison = None
        if isinstance(ours, str) and theirs.ok:
            steps.start("Comparing")
            comparison = compare(theirs.text, ours, limit=limit)
    if isinstance(ours, ShardyError):
        sys.exit(_report_refusal(theirs, ours))
    if comparison is None:
        click.echo(f"different: the reference gives no result ({theirs.kind}), here there is one\n{theirs.text}")
        sys.exit(1)
    echo_report(str(comparison))
    sys.exit(0 if comparison.equal else 1)


def _run_here(text: str, pipeline: str) -> str | ShardyError:
    """Return the module after the passes, or why there is none."""
    try:
        return run(text, pipeline)
    except ShardyError as error:
        return error


def _report_refusal(theirs: ReferenceOutcome, error: ShardyError) -> int:
    """Print who refuses the module and why; return the exit code."""
    if theirs.ok:
        click.echo(f"different: the reference gives a result, here there is none\n{error}")
        return 1
    click.echo(f"both refuse ({theirs.kind})\nreference: {theirs.text}\nhere: {error}")
    return 0
