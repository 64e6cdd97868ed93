"""Pictures of a comparison of schedules, drawn by matplotlib without a display."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from io import BytesIO
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from shardy_py.cost.report.comparison import group_alike
from shardy_py.cost.sweeps.comparison import MEASURES, Comparison, Measure, measure_of
from shardy_py.cost.sweeps.outcomes import Row
from shardy_py.cost.sweeps.search import SearchResult
from shardy_py.errors import Diagnostic, OptionError, require_library
from shardy_py.report.terminal_text import fold

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    _Draw = Callable[[Axes], None]

FORMATS = ("png", "svg")
_BARS = 20
_LABEL = 44
"""The most characters in a line of a label; longer names go on in the next line."""
_FRAME, _LEAST_HEIGHT = 2.5, 4.5
"""The inches of a figure besides its bars, and the least of all."""
_BELOW = 0.5
"""The inches between axes and the names below them, for the numbers of the axis and its label."""
_BAR, _LINE = 0.3, 0.21
"""The inches of a bar at least, and of a line of its label."""
_MARKERS = ("D", "^", "s", "v")
"""The markers of the points with names: of one schedule, and of the best by each measure."""
_MEASURED: dict[Measure, str] = {
    "time": "estimated time",
    "bytes": "bytes sent per device",
    "memory": "peak memory per device",
}
_TIMES = ((1e6, "us"), (1e3, "ms"), (1.0, "s"))
_METADATA: dict[str, dict[str, Any]] = {
    "pdf": {"CreationDate": None},
    "png": {"Software": None},
    "svg": {"Date": None},
}
"""The metadata that are left out, by the format: a date would make every picture another one."""
_SIZES = ((1.0, "B"), (2.0**-10, "KiB"), (2.0**-20, "MiB"), (2.0**-30, "GiB"), (2.0**-40, "TiB"))


def plot_format(path: str, formats: Sequence[str] = FORMATS) -> str:
    """Return the format that the suffix of a file asks for.

    Args:
        path: The file.
        formats: The formats that the picture can have.

    Raises:
        OptionError: it is none of them.
    """
    _, dot, suffix = path.lower().rpartition(".")
    if not dot or suffix not in formats:
        message = f"{path}: there is no picture of the format {suffix!r}"
        hint = f"end the name in {' or '.join(f'.{item}' for item in formats)}"
        raise OptionError(Diagnostic("unknown-format", message, hint=hint))
    return suffix


def draw_comparison(comparison: Comparison, picture_format: str = "png") -> bytes:
    """Return a picture: the estimated time of the best schedules, and bytes and memory of all of them.

    The same comparison gives the same picture.

    Args:
        comparison: The comparison.
        picture_format: ``png`` or ``svg``.

    Raises:
        OptionError: matplotlib is missing, or the format is another one.
    """
    return _picture(lambda: comparison_figure(comparison), picture_format)


def draw_search(result: SearchResult, picture_format: str = "png") -> bytes:
    """Return the picture of a search: that of its comparison, and beside it the best trial so far.

    Args:
        result: The result of the search.
        picture_format: ``png`` or ``svg``.

    Raises:
        OptionError: matplotlib is missing, or the format is another one.
    """
    return _picture(lambda: search_figure(result), picture_format)


def comparison_figure(comparison: Comparison) -> Figure:
    """Return the figure of a comparison."""
    draw = [lambda axes: _draw_times(axes, comparison), lambda axes: _draw_sizes(axes, comparison)]
    return _figure(draw, comparison)


def search_figure(result: SearchResult) -> Figure:
    """Return the figure of a search."""
    comparison = result.comparison
    draw = [
        lambda axes: _draw_times(axes, comparison),
        lambda axes: _draw_sizes(axes, comparison),
        lambda axes: _draw_progress(axes, result),
    ]
    return _figure(draw, comparison)


def _figure(draw: Sequence[_Draw], comparison: Comparison) -> Figure:
    """Return a figure of axes beside each other, so high that the labels of bars do not touch."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    labels = [_label(group) for group in group_alike(comparison)[:_BARS]]
    lines = max((label.count("\n") + 1 for label in labels), default=1)
    height = _FRAME + len(labels) * max(_BAR, _LINE * lines)
    figure = Figure(figsize=(6.5 * len(draw), max(_LEAST_HEIGHT, height)), layout="constrained")
    FigureCanvasAgg(figure)
    for axes, draw_plot in zip(figure.subplots(1, len(draw)), draw, strict=True):
        draw_plot(axes)
    return figure


def _picture(make: Callable[[], Figure], picture_format: str) -> bytes:
    """Return the picture of a figure."""
    known_format = plot_format(f".{picture_format}")
    require_matplotlib()
    return save_figure(make, known_format)


def save_figure(make: Callable[[], Figure], picture_format: str, settings: Mapping[str, Any] = {}) -> bytes:
    """Return the bytes of a figure; equal figures give equal bytes.

    Args:
        make: Returns the figure.
        picture_format: Its format.
        settings: More settings of matplotlib.
    """
    from matplotlib import rc_context

    # Texts stay texts, and identifiers do not depend on the process.
    all_settings: dict[Any, Any] = {"svg.hashsalt": "shardy_py", "svg.fonttype": "none", **settings}
    with rc_context(all_settings):
        buffer = BytesIO()
        make().savefig(buffer, format=picture_format, dpi=120, metadata=_METADATA[picture_format])
    return buffer.getvalue()


def require_matplotlib() -> None:
    """Check that matplotlib is installed.

    Raises:
        OptionError: it is not.
    """
    require_library("matplotlib", purpose="pictures need", extra="plot")


def _draw_times(axes: Axes, comparison: Comparison) -> None:
    groups = group_alike(comparison)
    rows = [group[0] for group in groups[:_BARS]][::-1]
    names = [_label(group) for group in groups[:_BARS]][::-1]
    axes.margins(y=0.01)
    axes.set_title("all results" if len(groups) <= _BARS else f"the best {_BARS} of {len(groups)} results")
    if any(row.seconds is None for row in rows):
        sent = [row.communication_bytes for row in rows]
        scale, unit = _unit(sent, _SIZES)
        axes.barh(names, [value * scale for value in sent], color="tab:orange")
        axes.set_xlabel(f"bytes sent per device, {unit}")
        return
    scale, unit = _unit([row.seconds for row in rows], _TIMES)
    compute = [(row.compute_seconds or 0) * scale for row in rows]
    axes.barh(names, compute, label="computing", color="tab:blue")
    rest = [(row.communication_seconds or 0) * scale for row in rows]
    axes.barh(names, rest, left=compute, label="communicating", color="tab:orange")
    axes.set_xlabel(f"estimated time, {unit}")
    _name_below(axes, columns=2)


def _draw_sizes(axes: Axes, comparison: Comparison) -> None:
    rows = comparison.rows
    x_scale, x_unit = _unit([row.communication_bytes for row in rows], _SIZES)
    y_scale, y_unit = _unit([row.peak_bytes for row in rows], _SIZES)
    x, y = [row.communication_bytes * x_scale for row in rows], [row.peak_bytes * y_scale for row in rows]
    axes.scatter(x, y, c=range(len(rows)), cmap="viridis", s=24)
    axes.margins(0.15)
    for row, marker in zip(_labelled(comparison), _MARKERS, strict=False):
        place = ([row.communication_bytes * x_scale], [row.peak_bytes * y_scale])
        name = "\n".join(fold(row.name, _LABEL))
        axes.scatter(*place, s=90, marker=marker, facecolor="none", edgecolor="tab:red", label=name)
    if rows:
        _name_below(axes)
    axes.set_xlabel(f"bytes sent per device, {x_unit}")
    axes.set_ylabel(f"peak memory per device, {y_unit}")
    axes.set_title(f"bytes and memory; dark is better by {comparison.sorted_by}")


def _draw_progress(axes: Axes, result: SearchResult) -> None:
    """Draw the measure of each trial, and the least so far."""
    measure = measure_of(result.minimise)
    trials = [(number, measure(row)) for number, row in enumerate(result.trials, 1) if isinstance(row, Row)]
    scale, unit = _unit([value for _, value in trials], _TIMES if result.minimise == "time" else _SIZES)
    numbers, values = [number for number, _ in trials], [value * scale for _, value in trials]
    axes.scatter(numbers, values, s=14, color="tab:gray", label="trial")
    axes.step(numbers, list(accumulate(values, min)), where="post", color="tab:blue", label="best so far")
    axes.set_xlabel("trial")
    axes.set_ylabel(f"{_MEASURED[result.minimise]}, {unit}")
    axes.set_title("search")
    _name_below(axes, columns=2)


def _name_below(axes: Axes, *, columns: int = 1) -> None:
    """Say below a picture what its colours and markers stand for, where no bar and no point is."""
    from matplotlib.transforms import ScaledTranslation

    figure = axes.get_figure(root=True)
    assert figure is not None
    under = axes.transAxes + ScaledTranslation(0, -_BELOW, figure.dpi_scale_trans)
    axes.legend(
        loc="upper center", bbox_to_anchor=(0.5, 0.0), bbox_transform=under, ncols=columns, frameon=False, fontsize=8
    )


def _label(group: Sequence[Row]) -> str:
    """Return the whole name of a schedule, with the number of those that lead to the same."""
    more = f" and {len(group) - 1} more" if len(group) > 1 else ""
    return "\n".join(fold(f"{group[0].name}{more}", _LABEL))


def _labelled(comparison: Comparison) -> list[Row]:
    """Return the first schedule and the best ones by each measure, one per place in the picture."""
    best = (comparison.sorted(measure).rows[:1] for measure in MEASURES)
    first = [row for row in comparison.rows if row.name == comparison.first]
    chosen = [*first, *(row for rows in best for row in rows)]
    places: dict[tuple[float, float], Row] = {}
    for row in chosen:
        places.setdefault((row.communication_bytes, row.peak_bytes), row)
    return list(places.values())


def _unit(values: list[Any], units: tuple[tuple[float, str], ...]) -> tuple[float, str]:
    """Return the factor and the name of the unit in which the largest value is below 1000."""
    largest = max(values, default=0)
    return next((item for item in units if largest * item[0] < 1000), units[-1])
