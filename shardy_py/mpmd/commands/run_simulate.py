"""``shardy mpmd simulate``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from shardy_py.cli.files import read_stdin, write_output
from shardy_py.errors import Diagnostic, OptionError
from shardy_py.mpmd.schedules.builders import SCHEDULES, build_schedule
from shardy_py.mpmd.schedules.schedule import PipelineSchedule
from shardy_py.mpmd.schedules.search import search_schedule
from shardy_py.mpmd.schedules.simulation import StageTimes, Timeline, simulate
from shardy_py.report.terminal_text import text_width

_WORDS = {"F": "forward", "I": "input_gradient", "W": "weight_gradient", "transfer": "transfer"}
_SEARCH = "search"
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
    plot: str | None,
    limit: float | None,
    weight_activations: float | None,
    as_csv: bool,
    as_json: bool,
) -> None:
    """Print the timeline of a schedule, its figures, or the schedule itself; write it as a trace where asked."""
    if as_csv and as_json:
        message, hint = "--csv and --json exclude each other", "leave out one of them"
        raise OptionError(Diagnostic("option-conflict", message, hint=hint))
    numbers = {"schedule": schedule, "meshes": meshes, "microbatches": microbatches, "chunks": chunks}
    _refuse_useless(file, numbers, {"limit": limit, "weight-activations": weight_activations})
    if plot is not None and not plot.endswith(".svg"):
        raise OptionError(Diagnostic("invalid-file", f"{plot} does not end with .svg", hint="give --plot timeline.svg"))
    sizes = {"meshes": 4 if meshes is None else meshes, "microbatches": 8 if microbatches is None else microbatches}
    if schedule == _SEARCH:
        timeline = search_schedule(
            times=parse_times(times),
            limit=limit,
            weight_activations=1.0 if weight_activations is None else weight_activations,
            **sizes,
        )
    else:
        timeline = simulate(_schedule(file, schedule or "1F1B", sizes, chunks), parse_times(times))
    if trace is not None:
        write_output(trace, json.dumps({"traceEvents": timeline.trace_events()}) + "\n")
    if plot is not None:
        write_output(plot, timeline.svg())
    if as_csv:
        click.echo(str(timeline.schedule))
    elif as_json:
        click.echo(json.dumps(timeline_data(timeline), indent=2))
    else:
        _print(timeline)


def _refuse_useless(file: str | None, numbers: dict[str, Any], searching: dict[str, Any]) -> None:
    """Refuse options that have no effect on a file, on a schedule by its name, or on a search, and a name as a file."""
    of_numbers = [f"--{name}" for name, number in numbers.items() if number is not None]
    of_search = [f"--{name}" for name, number in searching.items() if number is not None]
    if file in SCHEDULES and not Path(file).exists():
        message = f"{file} is the name of a schedule, not a file"
        raise OptionError(Diagnostic("option-conflict", message, hint=f"give --schedule {file}"))
    if file is not None and of_numbers:
        message = f"{' and '.join(of_numbers)} would have no effect: {file} has the schedule"
        raise OptionError(Diagnostic("option-conflict", message, hint="leave out the file or these options"))
    if of_search and numbers["schedule"] != _SEARCH:
        message = f"{' and '.join(of_search)} would have no effect: no schedule is searched"
        raise OptionError(Diagnostic("option-conflict", message, hint="give --schedule search"))
    if numbers["schedule"] == _SEARCH and numbers["chunks"] is not None:
        message = "--chunks would have no effect: schedules with one stage per mesh are searched"
        raise OptionError(Diagnostic("option-conflict", message, hint="leave it out"))


def _schedule(file: str | None, name: str, sizes: dict[str, int], chunks: int | None) -> PipelineSchedule:
    if file is None:
        return build_schedule(name, chunks=1 if chunks is None else chunks, **sizes)
    data = read_stdin() if file == "-" else Path(file).read_bytes()
    return PipelineSchedule.parse(data.decode("utf-8", "replace"), name=file)


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
