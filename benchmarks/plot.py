"""A picture of measurements: per program our time by stage beside that of the C++ passes, per op."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from benchmarks.measure import Measurement
from benchmarks.runs import STAGES

_MICRO = 1e6
_HEIGHT, _LEFT = 0.38, 0.2


def draw(items: Sequence[Measurement], path: Path) -> None:
    """Write the picture, in the format of the path's suffix."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 1.5 + 0.5 * len(items)), layout="constrained")
    axes = figure.subplots()
    places = range(len(items))
    starts = [0.0 for _ in items]
    for stage in STAGES:
        widths = [item.stages[stage] / item.ops * _MICRO for item in items]
        axes.barh([place - _LEFT for place in places], widths, _HEIGHT, left=starts, label=stage)
        starts = [start + width for start, width in zip(starts, widths, strict=True)]
    reference = [item.reference_seconds / item.ops * _MICRO for item in items]
    axes.barh([place + _LEFT for place in places], reference, _HEIGHT, color="lightgrey", label="C++")
    for place, item in enumerate(items):
        axes.text(max(starts[place], reference[place]), place, f" {item.ratio:.2f}", va="center")
    axes.set_yticks(list(places), [f"{item.name} ({item.ops:,} ops)" for item in items])
    axes.invert_yaxis()
    axes.margins(x=0.1)
    axes.set_xlabel("microseconds per op; the numbers are ours / C++")
    figure.legend(loc="outside upper center", ncols=len(STAGES) + 1)
    figure.savefig(path)
