"""Tables, data and pictures of comparisons."""

from __future__ import annotations

import json
import re
from io import StringIO
from itertools import combinations

import pytest
from attrs import evolve

pytest.importorskip("rich")

from shardy_py.cost.report.comparison import comparison_json, print_comparison
from shardy_py.cost.report.plots import comparison_figure, draw_comparison, draw_search, plot_format, search_figure
from shardy_py.cost.sweeps.comparison import Comparison, make_comparison
from shardy_py.cost.sweeps.outcomes import Collectives, Outcome, RefusedSchedule, Row
from shardy_py.cost.sweeps.search import SearchResult
from shardy_py.errors import OptionError

ROW = Row(
    name="slow",
    schedule="levels of slow",
    values_changed=0,
    collectives=(Collectives("all_gather", 3, 2048.0), Collectives("all_reduce", 1, 1024.0)),
    communication_bytes=3072.0,
    communication_seconds=0.5,
    compute_seconds=1.5,
    seconds=2.0,
    peak_bytes=1 << 20,
    flops=1000,
    balance=0.75,
)
FAST = evolve(ROW, name="fast", schedule="levels of fast", seconds=0.02, compute_seconds=0.01, values_changed=7)
TWIN = evolve(FAST, name="twin", schedule="levels of twin")
REFUSAL = RefusedSchedule("odd", "levels of odd", ("it is odd",))


def table(comparison: Comparison, **options: int) -> str:
    """Return what is printed."""
    stream = StringIO()
    print_comparison(comparison, file=stream, **options)
    return stream.getvalue()


def comparison(*outcomes: Outcome) -> Comparison:
    """Return the comparison of outcomes with the slow schedule."""
    return make_comparison(outcomes, first="slow")


def test_a_line_has_all_numbers_with_units() -> None:
    """Times, bytes, shares and a column for every kind of collective that occurs."""
    lines = table(comparison(ROW, FAST)).splitlines()
    slow = next(line for line in lines if "slow *" in line).split()
    assert slow == ["slow", "*", "2.00", "s", "500", "ms", "3.0", "KiB", "1.0", "MiB", "75%", "3", "1", "0"]
    fast = next(line for line in lines if "fast" in line).split()
    assert fast == ["fast", "20.0", "ms", "500", "ms", "3.0", "KiB", "1.0", "MiB", "75%", "3", "1", "7"]
    assert lines.index(next(line for line in lines if "fast" in line)) < lines.index(
        next(line for line in lines if "slow *" in line)
    )
    assert lines[-1].strip().startswith("* slow")


def test_equal_numbers_share_a_line() -> None:
    """Schedules that lead to the same are listed below each other, the others counted."""
    text = table(comparison(ROW, FAST, TWIN))
    assert text.count("20.0 ms") == 1
    assert text.index("fast") < text.index("twin") < text.index("slow *")
    many = table(comparison(ROW, *(evolve(FAST, name=f"fast {i}") for i in range(9))))
    assert "fast 3" in many
    assert "5 more" in many
    assert "fast 4" not in many


def test_the_first_schedule_is_always_shown() -> None:
    """However few lines are wanted, the one that the others are compared with is there."""
    actual = comparison(ROW, *(evolve(FAST, name=f"fast {i}", values_changed=i) for i in range(5)))
    text = table(actual, limit=2)
    assert "fast 0" in text
    assert "fast 1" not in text
    assert "slow *" in text
    assert "4 schedules more, with 4 other results" in text


def test_refusals_come_last_with_the_reason() -> None:
    """A schedule without numbers has no line in the table."""
    assert table(comparison(ROW, REFUSAL)).splitlines()[-1] == "odd: it is odd"
    assert table(comparison(REFUSAL)) == "odd: it is odd\n"


def test_what_is_not_known_is_a_dash() -> None:
    """Without a machine there are no times, without work no share of it."""
    row = evolve(ROW, seconds=None, compute_seconds=None, communication_seconds=None, balance=None)
    line = next(line for line in table(comparison(row)).splitlines() if "slow" in line)
    assert line.split()[:6] == ["slow", "*", "-", "-", "3.0", "KiB"]


def test_json_has_every_number() -> None:
    """Rows are in order, with their schedules; sizes are bytes and times seconds."""
    data = json.loads(comparison_json(comparison(ROW, FAST, REFUSAL)))
    assert (data["first"], data["sorted_by"]) == ("slow", "time")
    assert [row["name"] for row in data["rows"]] == ["fast", "slow"]
    assert data["rows"][1]["collectives"][0] == {"kind": "all_gather", "count": 3, "bytes": 2048.0}
    assert data["rows"][1]["seconds"] == 2.0
    assert data["rows"][1]["schedule"] == "levels of slow"
    assert data["refused"] == [{"name": "odd", "schedule": "levels of odd", "problems": ["it is odd"]}]


@pytest.mark.parametrize("with_times", [True, False])
def test_pictures_are_what_their_suffix_says(with_times: bool) -> None:
    """PNG and SVG; the same comparison gives the same picture, and schedules are named in it."""
    pytest.importorskip("matplotlib")
    rows = [ROW, FAST, TWIN, *(evolve(FAST, name=f"n{i}", peak_bytes=i << 20) for i in range(30))]
    if not with_times:
        rows = [evolve(row, seconds=None, compute_seconds=None, communication_seconds=None) for row in rows]
    actual = make_comparison(rows, first="slow", sorted_by="time" if with_times else "bytes")
    assert draw_comparison(actual, plot_format("a.PNG")).startswith(b"\x89PNG")
    picture = draw_comparison(actual, "svg")
    assert picture == draw_comparison(actual, "svg")
    text = picture.decode()
    assert "</svg>" in text
    assert ">slow</text>" in text
    assert (">estimated time, ms</text>" in text) == with_times


def test_equal_results_share_a_bar_and_names_are_whole() -> None:
    """Schedules that lead to the same are one bar with their number; a long name goes on in the next line."""
    pytest.importorskip("matplotlib")
    long = "schedules/" + "a long name of a schedule " * 3 + "end"
    same = [evolve(FAST, name=f"same {number}", schedule=str(number)) for number in range(4)]
    actual = make_comparison([ROW, *same, evolve(ROW, name=long, peak_bytes=1)], first="slow", sorted_by="time")
    text = draw_comparison(actual, "svg").decode()
    assert ">same 0 and 3 more</text>" in text
    assert "same 1" not in text
    words = re.sub(r"<[^>]*>", " ", text).split()
    assert "end" in words


def test_pictures_of_searches_have_the_progress() -> None:
    """Beside the comparison stands the measure of each trial and the best so far."""
    pytest.importorskip("matplotlib")
    result = SearchResult(best=FAST, default=ROW, trials=(ROW, FAST, TWIN), minimise="time")
    text = draw_search(result, "svg").decode()
    for expected in ("search", "trial", "best so far", "estimated time, s"):
        assert f">{expected}</text>" in text
    assert draw_search(result, "svg").decode() == text


@pytest.mark.parametrize("count", [1, 30])
@pytest.mark.parametrize("with_times", [True, False])
def test_labels_are_whole_and_do_not_touch(count: int, with_times: bool) -> None:
    """Every text is inside of the figure, as matplotlib measures it, and no label lies on another one."""
    pytest.importorskip("matplotlib")
    from matplotlib.text import Text

    long = "a_folder/" + "a_long_name_of_a_schedule_" * 5
    named = [
        evolve(FAST, name=f"{long}{i}", peak_bytes=(i + 1) << 20, communication_bytes=1e3 + i, seconds=0.02 + i / 50)
        for i in range(count)
    ]
    rows = [ROW, *named, TWIN, evolve(FAST, name="x" * 150, peak_bytes=1, communication_bytes=1e9)]
    if not with_times:
        rows = [evolve(row, seconds=None, compute_seconds=None, communication_seconds=None) for row in rows]
    actual = make_comparison(rows, first="slow", sorted_by="time" if with_times else "bytes")
    search = SearchResult(best=FAST, default=ROW, trials=tuple(rows), minimise="time" if with_times else "bytes")
    for figure in (comparison_figure(actual), search_figure(search)):
        figure.draw_without_rendering()
        page = figure.bbox
        for axes in figure.axes:
            labels = [text for text in axes.get_yticklabels() if len(text.get_text()) > 5]
            legend = axes.get_legend()
            texts = [*labels, *(legend.get_texts() if legend else ()), axes.title, axes.xaxis.label, axes.yaxis.label]
            boxes = [(text.get_text(), text.get_window_extent()) for text in texts if text.get_text()]
            for text, box in boxes:
                assert all(page.contains(x, y) for x, y in box.corners()), text
            for (text, box), (other, beside) in combinations(boxes, 2):
                assert not box.overlaps(beside), (text, other)
        drawn = "".join("".join(text.get_text().split()) for text in figure.findobj(Text))
        assert "x" * 150 in drawn
        assert f"{long}0" in drawn


def test_pictures_need_neither_rows_nor_a_display() -> None:
    """An empty comparison is an empty picture, and pyplot, which would look for a display, is not imported."""
    pytest.importorskip("matplotlib")
    import subprocess
    import sys

    code = (
        "import sys; from shardy_py.cost.sweeps.comparison import make_comparison;"
        "from shardy_py.cost.report.plots import draw_comparison;"
        "draw_comparison(make_comparison([], first='a'));"
        "print('matplotlib.pyplot' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout == "False\n"


@pytest.mark.parametrize("name", ["a.pdf", "png", "a"])
def test_other_formats_are_refused(name: str) -> None:
    """The name has to end in .png or .svg."""
    with pytest.raises(OptionError, match="no picture of the format"):
        plot_format(name)
