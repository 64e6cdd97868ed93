"""``shardy mpmd plan``."""

from __future__ import annotations

import json
from typing import Any

import click

from shardy_py.api.keywords import keywords
from shardy_py.cli.session import GivenProgram
from shardy_py.cost.commands.run_advise import parse_size
from shardy_py.errors import Diagnostic, OptionError
from shardy_py.mpmd.pipeline_plan import PipelinePlan, plan
from shardy_py.support.arguments import parse_integer


def run_plan(
    *,
    meshes: int,
    microbatches: str,
    machine: str,
    budget_memory: str | None,
    plan_shardings: bool,
    as_json: bool,
    **session_options: Any,
) -> None:
    """Print the pipelines for a program, the fastest that fits first, and the stages of that."""
    program = GivenProgram.of(**session_options)
    inputs = keywords(program.input)
    options = keywords(program.options) if plan_shardings else program.options.run_options()
    pipeline_plan = plan(
        inputs.pop("module"),
        meshes=meshes,
        microbatches=_counts(microbatches),
        machine=machine,
        budget_memory=None if budget_memory is None else int(parse_size(budget_memory)),
        plan_shardings=plan_shardings,
        **inputs,
        **options,
    )
    click.echo(json.dumps(plan_json(pipeline_plan), indent=2) if as_json else str(pipeline_plan))


def _counts(text: str) -> list[int]:
    """Return the numbers of microbatches of a command line.

    Raises:
        OptionError: one is no number.
    """
    numbers = [parse_integer(item.strip()) for item in text.split(",")]
    if any(number is None for number in numbers):
        message = f"--microbatches {text}: this is not a list of numbers"
        raise OptionError(Diagnostic("invalid-count", message, hint="--microbatches 8,16,32"))
    return [number for number in numbers if number is not None]


def plan_json(pipeline_plan: PipelinePlan) -> dict[str, Any]:
    """Return a plan as JSON values, seconds and bytes as numbers."""
    rows = [
        {
            "schedule": item.schedule,
            "chunks": item.chunks,
            "microbatches": item.microbatches,
            "seconds": item.seconds,
            "seconds_per_microbatch": item.seconds_per_microbatch,
            "bubble": item.timeline.bubble,
            "peak_bytes": item.peak_bytes,
            "fits": item.fits,
            "shardings": item.shardings,
        }
        for item in pipeline_plan.candidates
    ]
    stages = [
        {
            "first": cut.first,
            "end": cut.end,
            "ops": list(cut.names),
            "seconds": cut.seconds,
            "sent_bytes": cut.sent_bytes,
        }
        for cut in pipeline_plan.best.cuts
    ]
    planned = {"planned_shardings": dict(pipeline_plan.specs)} if pipeline_plan.specs else {}
    return {"candidates": rows, "stages": stages, "skipped": list(pipeline_plan.skipped), **planned}
