"""Tables for terminals: numbers whole, words folded."""

from __future__ import annotations

import io
import re

import pytest

pytest.importorskip("rich")

from shardy_py.report.terminal import make_tables, open_console, print_table

_STYLE = re.compile(r"\x1b\[[0-9;]*m")
HEADINGS = ("kind", "tensor", "devices", "bytes each")
ROWS = [
    ("collective_permute", "tensor<128x64x32x16x8x4x2xf32>", "8", "12.0 KiB"),
    ("all_gather", "tensor<4xf32>", "16", "7 B"),
]


class Terminal(io.StringIO):
    """A stream that looks like a terminal."""

    def isatty(self) -> bool:
        return True


def printed(stream: io.StringIO, width: int, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the lines of a table on a stream of some width."""
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    console = open_console(stream)
    print_table(console, "Transfers", HEADINGS, [ROWS], words=("kind", "tensor"))
    return _STYLE.sub("", stream.getvalue()).splitlines()


@pytest.mark.parametrize("stream", [Terminal, io.StringIO])
@pytest.mark.parametrize("width", [64, 80, 120])
def test_no_number_and_no_word_is_cut(stream: type[io.StringIO], width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A table is as wide as its console at most; what does not fit goes on in the next line."""
    lines = printed(stream(), width, monkeypatch)
    assert max(map(len, lines)) <= width
    text = "\n".join(lines)
    assert "\u2026" not in text
    assert "12.0 KiB" in text
    assert "collective_permute" in text
    assert text.count("tensor<") == 2


def test_a_wide_console_needs_no_folding(monkeypatch: pytest.MonkeyPatch) -> None:
    """One line per row, with headings that are not stacked."""
    lines = printed(io.StringIO(), 120, monkeypatch)
    assert any("bytes each" in line for line in lines)
    assert sum("KiB" in line or "7 B" in line for line in lines) == 2


def test_a_pipe_has_eighty_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nobody looks at a terminal, the width is the usual one, or the one that is asked for."""
    monkeypatch.setenv("COLUMNS", "")
    assert open_console(io.StringIO()).width == 80
    monkeypatch.setenv("COLUMNS", "120")
    assert open_console(io.StringIO()).width == 120


def test_words_that_cannot_stand_beside_each_other_stand_in_two_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each table has the first column, so that no word has to be broken."""
    monkeypatch.setenv("COLUMNS", "60")
    row = ("a.name_of_some_characters", "another_of_as_many_more_x", "a_third")
    console = open_console(io.StringIO())
    headings = ("first", "second", "third")
    tables = make_tables(console, "Words", headings, [[row]], words=headings)
    assert [len(table.columns) for table in tables] == [2, 2]
    print_table(console, "Words", headings, [[row]], words=headings, caption="the end")
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert max(map(len, text.splitlines())) <= 60
    assert text.count(row[0]) == 2
    assert text.count(row[1]) == 1
    assert text.count("the end") == 1
