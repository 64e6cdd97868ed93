"""The picture of a study: per program, mesh and machine the measure of each schedule over that of the first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shardy_py.cost.report.plots import plot_format, require_matplotlib, save_figure
from shardy_py.cost.studies.table import StudyRow, StudyTable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMATS = ("svg", "pdf", "png")
_ROW = 0.72
"""The inches of a row."""


def study_plot_format(path: str) -> str:
    """Return the format that the suffix of a file asks for, and check that it can be drawn.

    Raises:
        OptionError: it is none that is drawn here, or matplotlib is missing.
    """
    picture_format = plot_format(path, FORMATS)
    require_matplotlib()
    return picture_format


def draw_study(table: StudyTable, picture_format: str) -> bytes:
    """Return a picture of a table; the same table gives the same picture.

    The grey band holds what the estimator does not tell from the first schedule.
    """
    return save_figure(lambda: _figure(table), picture_format, {"font.size": 8})


def _figure(table: StudyTable) -> Figure:
    from matplotlib.figure import Figure

    groups: dict[str, list[StudyRow]] = {}
    for row in table.rows:
        if row.relative is not None:
            groups.setdefault("\n".join(filter(None, row.provenance.group)), []).append(row)
    figure = Figure(figsize=(7, 1.2 + _ROW * max(1, len(groups))), layout="constrained")
    axes = figure.subplots()
    axes.axvspan(1 / (1 + table.tie), 1 + table.tie, color="0.9", zorder=0)
    for index, rows in enumerate(groups.values()):
        for is_drawn, marker, colour in ((True, "o", "0.55"), (False, "D", "tab:blue")):
            points = [row for row in rows if (row.provenance.seed is not None) == is_drawn]
            numbers = [row.relative or 0.0 for row in points]
            axes.scatter(numbers, [index] * len(points), marker=marker, s=14, color=colour, zorder=2)
        best = min(rows, key=lambda row: (row.relative or 0.0, row.outcome.name))
        axes.annotate(best.outcome.name, (best.relative or 0.0, index), (0, 6), textcoords="offset points")
    axes.set_yticks(range(len(groups)), list(groups))
    axes.set_ylim(len(groups) - 0.4, -0.6)
    axes.set_xlabel(f"{table.measure} over that of the first schedule; grey: a tie")
    return figure
