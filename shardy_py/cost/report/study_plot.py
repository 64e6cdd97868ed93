"""The picture of a study: per program, mesh and machine the measure of each schedule over that of the first."""

from __future__ import annotations

from io import BytesIO

from shardy_py.cost.report.plots import require_matplotlib
from shardy_py.cost.studies.table import StudyRow, StudyTable
from shardy_py.errors import Diagnostic, OptionError

FORMATS = ("pdf", "png", "svg")
_ROW = 0.45
"""The inches of a row."""
_DATES = {"pdf": {"CreationDate": None}, "svg": {"Date": None}, "png": {}}


def study_plot_format(path: str) -> str:
    """Return the format that the suffix of a file asks for, and check that it can be drawn.

    Raises:
        OptionError: it is none that is drawn here, or matplotlib is missing.
    """
    suffix = path.lower().rpartition(".")[2]
    if suffix not in FORMATS:
        message = f"{path}: there is no picture of the format {suffix!r}"
        raise OptionError(Diagnostic("unknown-format", message, hint="end the name in .svg, .pdf or .png"))
    require_matplotlib()
    return suffix


def draw_study(table: StudyTable, picture_format: str) -> bytes:
    """Return a picture of a table; the same table gives the same picture.

    The grey band holds what the estimator does not tell from the first schedule.
    """
    import matplotlib
    from matplotlib.figure import Figure

    groups: dict[str, list[StudyRow]] = {}
    for row in table.rows:
        if row.relative is not None:
            groups.setdefault("\n".join(filter(None, row.provenance.group)), []).append(row)
    with matplotlib.rc_context({"svg.hashsalt": "shardy", "font.size": 8}):
        figure = Figure(figsize=(7, 1.2 + _ROW * 1.6 * max(1, len(groups))), layout="constrained")
        axes = figure.subplots()
        axes.axvspan(1 / (1 + table.tie), 1 + table.tie, color="0.9", zorder=0)
        for place, rows in enumerate(groups.values()):
            for is_drawn, marker, colour in ((True, "o", "0.55"), (False, "D", "tab:blue")):
                points = [row for row in rows if (row.provenance.seed is not None) == is_drawn]
                numbers = [row.relative or 0.0 for row in points]
                axes.scatter(numbers, [place] * len(points), marker=marker, s=14, color=colour, zorder=2)
            best = min(rows, key=lambda row: (row.relative or 0.0, row.outcome.name))
            axes.annotate(best.outcome.name, (best.relative or 0.0, place), (0, 6), textcoords="offset points")
        axes.set_yticks(range(len(groups)), list(groups))
        axes.set_ylim(len(groups) - 0.4, -0.6)
        axes.set_xlabel(f"{table.measure} over that of the first schedule; grey: a tie")
        buffer = BytesIO()
        figure.savefig(buffer, format=picture_format, metadata=_DATES[picture_format])
    return buffer.getvalue()
