"""Text in lines of a width."""

from __future__ import annotations

import pytest

from shardy_py.report.terminal_text import fold, least_width, wrap_line

TEXTS = [
    "float32[4096,64]{1,0:T(8,128)}",
    'stablehlo.dot_general of %50 at a/folder/model.py:68:11 <@mesh, [{"data"}, {}]>',
    "a_name_without_any_place_to_break" * 3,
    "two\nlines of words",
    "",
]


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("width", [1, 7, 12, 80])
def test_nothing_is_lost_and_nothing_is_too_long(text: str, width: int) -> None:
    """All characters are there, in order, in lines that are short enough."""
    lines = fold(text, width)
    assert "".join("".join(lines).split()) == "".join(text.split())
    assert max(map(len, lines)) <= width


@pytest.mark.parametrize("text", TEXTS)
def test_words_are_whole_where_there_is_space(text: str) -> None:
    """A width that has space for the longest part between brackets breaks nowhere else."""
    width = max(1, least_width(text))
    for line in fold(text, width):
        assert all(part in text for part in line.split())
        assert not line.endswith((".", "_", ":"))


def test_other_lines_are_indented_more() -> None:
    """A line that goes on stands under its own first line."""
    lines = wrap_line("  %49 dim 2 <- %98 dim 2: backward through an op of the program", 30)
    assert max(map(len, lines)) <= 30
    assert lines[0].startswith("  %49")
    assert all(line.startswith("      ") and line[6] != " " for line in lines[1:])
    assert " ".join(" ".join(lines).split()) == "%49 dim 2 <- %98 dim 2: backward through an op of the program"
    assert wrap_line("short", 30) == ["short"]
