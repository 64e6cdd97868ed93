"""Timelines as pictures in SVG."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from shardy_py.mpmd.schedules.actions import BACKWARD, FORWARD, INPUT_GRADIENT, WEIGHT_GRADIENT
from shardy_py.mpmd.schedules.simulation import Event, Timeline

_COLORS = {FORWARD: "#a6c8f0", BACKWARD: "#f2b98f", INPUT_GRADIENT: "#f2d48f", WEIGHT_GRADIENT: "#b5dfb0"}
_WORDS = {
    FORWARD: "forward",
    BACKWARD: "backward",
    INPUT_GRADIENT: "gradient of the input",
    WEIGHT_GRADIENT: "gradient of the weights",
}
_ROW, _TOP, _LEFT, _LETTER = 22, 28, 34, 6.2


def draw_svg(timeline: Timeline, *, width: int = 860) -> str:
    """Return a picture of a timeline: a row for each mesh, a box for each action with the number of its microbatch.

    Args:
        timeline: The timeline.
        width: The width of the picture, in pixels.
    """
    meshes = timeline.schedule.mesh_count
    height = _TOP + meshes * _ROW + 26
    scale = (width - _LEFT - 4) / timeline.makespan if timeline.makespan else 0.0
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
            f'viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="11">',
            f'<rect width="{width}" height="{height}" fill="white"/>',
            f'<text x="{_LEFT}" y="17" font-size="13">{escape(_title(timeline))}</text>',
            *(line for mesh in range(meshes) for line in _row(timeline, mesh, scale)),
            *_legend(timeline, height - 16),
            "</svg>\n",
        ]
    )


def _title(timeline: Timeline) -> str:
    live = max((timeline.live(mesh) for mesh in range(timeline.schedule.mesh_count)), default=0)
    name = timeline.schedule.name or "schedule"
    figures = f"makespan {timeline.makespan:g}, bubble {100 * timeline.bubble:.1f} %"
    return f"{name}: {figures}, at most {live} live microbatches"


def _row(timeline: Timeline, mesh: int, scale: float) -> Iterator[str]:
    y = _TOP + mesh * _ROW
    yield f'<text x="6" y="{y + 14}">m{mesh}</text>'
    yield f'<rect x="{_LEFT}" y="{y}" width="{timeline.makespan * scale:.1f}" height="{_ROW - 3}" fill="#eeeeee"/>'
    for event in timeline.of_mesh(mesh):
        yield _box(event, y, scale)


def _box(event: Event, y: int, scale: float) -> str:
    action = event.action
    x, size = _LEFT + event.start * scale, (event.end - event.start) * scale
    label = str(action.microbatch)
    text = ""
    if size >= _LETTER * len(label) + 2:
        text = f'<text x="{x + size / 2:.1f}" y="{y + 14}" text-anchor="middle">{label}</text>'
    box = f'<rect x="{x:.1f}" y="{y}" width="{size:.1f}" height="{_ROW - 3}" fill="{_COLORS[action.kind]}"'
    return f'<g>{box} stroke="white" stroke-width="0.6"><title>{action}</title></rect>{text}</g>'


def _legend(timeline: Timeline, y: int) -> Iterator[str]:
    kinds = {event.action.kind for event in timeline.events}
    x = _LEFT
    for kind, word in _WORDS.items():
        if kind in kinds:
            yield f'<rect x="{x}" y="{y}" width="11" height="11" fill="{_COLORS[kind]}"/>'
            yield f'<text x="{x + 15}" y="{y + 10}">{word}</text>'
            x += 32 + round(_LETTER * len(word))
