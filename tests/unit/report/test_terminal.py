"""Tables for terminals: numbers whole, words folded."""

from __future__ import annotations

import io
import re

import pytest

pytest.importorskip("rich")

from shardy_py.report.terminal import make_table, open_console

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
    console.print(make_table(console, "Transfers", HEADINGS, [ROWS], words=("kind", "tensor")))
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


def test_a_pipe_has_a_least_width(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nobody looks at a terminal, lines may be longer."""
    monkeypatch.setenv("COLUMNS", "40")
    assert open_console(io.StringIO(), pipe_width=160).width == 160
    assert open_console(Terminal(), pipe_width=160).width == 40
