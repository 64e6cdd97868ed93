"""``shardy mpmd simulate``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from shardy_py.cli.files import read_stdin, write_atomically
from shardy_py.errors import Diagnostic, OptionError
from shardy_py.mpmd.schedules.builders import build_schedule
from shardy_py.mpmd.schedules.schedule import PipelineSchedule
from shardy_py.mpmd.schedules.simulation import StageTimes, Timeline, simulate
from shardy_py.report.terminal_text import text_width

_WORDS = {"F": "forward", "I": "input_gradient", "W": "weight_gradient", "transfer": "transfer"}
_MARGIN = 6
_LEAST_WIDTH = 24


def run_simulate(
    *,
    file: str | None,
    schedule: str | None,
    meshes: int | None,
    microbatches: int | None,
    chunks: int | None,
    times: str,
    trace: str | None,
    as_csv: bool,
    as_json: bool,
) -> None:
    """Print the timeline of a schedule, its figures, or the schedule itself; write it as a trace where asked."""
    if as_csv and as_json:
        message, hint = "--csv and --json exclude each other", "leave out one of them"
        raise OptionError(Diagnostic("option-conflict", message, hint=hint))
    numbers = {"schedule": schedule, "meshes": meshes, "microbatches": microbatches, "chunks": chunks}
    set_options = [f"--{name}" for name, number in numbers.items() if number is not None]
    if file is None:
        value = build_schedule(
            schedule or "1F1B",
            meshes=4 if meshes is None else meshes,
            microbatches=8 if microbatches is None else microbatches,
            chunks=1 if chunks is None else chunks,
        )
    elif set_options:
        message = f"{' and '.join(set_options)} would have no effect: {file} has the schedule"
        raise OptionError(Diagnostic("option-conflict", message, hint="leave out the file or these options"))
    else:
        data = read_stdin() if file == "-" else Path(file).read_bytes()
        value = PipelineSchedule.parse(data.decode("utf-8", "replace"), name=file)
    timeline = simulate(value, parse_times(times))
    if trace is not None:
        write_atomically(trace, json.dumps({"traceEvents": timeline.trace_events()}) + "\n")
    if as_csv:
        click.echo(str(value))
    elif as_json:
        click.echo(json.dumps(timeline_data(timeline), indent=2))
    else:
        _print(timeline)


def parse_times(text: str) -> StageTimes:
    """Return the times in a text such as ``F=1,I=1,W=0.5,transfer=0.1``.

    >>> parse_times("F=2,transfer=0.5").transfer
    0.5

    Raises:
        OptionError: a name or a number is not valid.
    """
    values: dict[str, float] = {}
    for item in filter(None, map(str.strip, text.split(","))):
        name, _, number = item.partition("=")
        try:
            values[_WORDS[name.strip()]] = float(number)
        except (KeyError, ValueError):
            message = f"{item!r} is not a valid time"
            raise OptionError(Diagnostic("invalid-time", message, hint="F=1,I=1,W=1,transfer=0")) from None
    return StageTimes(**values)


def timeline_data(timeline: Timeline) -> dict[str, Any]:
    """Return the figures and events of a timeline as JSON."""
    schedule = timeline.schedule
    return {
        "schedule": schedule.name,
        "meshes": schedule.mesh_count,
        "stages": schedule.stage_count,
        "microbatches": schedule.microbatch_count,
        "makespan": timeline.makespan,
        "bubble": timeline.bubble,
        "bubble_rate": timeline.bubble_rate,
        "live": [timeline.live(mesh) for mesh in range(schedule.mesh_count)],
        "events": [
            {"mesh": event.mesh, "action": str(event.action), "start": event.start, "end": event.end}
            for event in timeline.events
        ],
    }


def _print(timeline: Timeline) -> None:
    schedule = timeline.schedule
    live = ", ".join(str(timeline.live(mesh)) for mesh in range(schedule.mesh_count))
    head = f"{schedule.name}: {schedule.stage_count} stages on {schedule.mesh_count} meshes"
    click.echo(f"{head}, {schedule.microbatch_count} microbatches")
    click.echo(timeline.chart(max(_LEAST_WIDTH, min(72, text_width() - _MARGIN))))
    click.echo(f"makespan {timeline.makespan:g}, bubble {100 * timeline.bubble:.1f} % of all meshes")
    click.echo(f"live microbatches per mesh: {live}")
