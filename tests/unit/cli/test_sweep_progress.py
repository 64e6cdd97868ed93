"""The progress of commands that evaluate many schedules."""

from __future__ import annotations

import io
import re
import sys

import pytest

pytest.importorskip("rich")

from shardy_py.cost.commands.sweep_progress import sweep_progress
from shardy_py.cost.sweeps.outcomes import RefusedSchedule


class Terminal(io.StringIO):
    """A stream that looks like a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("known", [6, None])
def test_a_terminal_shows_how_many_of_how_many_are_done(known: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the start where the total is known, and after the first outcome in any case."""
    stream = Terminal()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setattr(sys, "stderr", stream)
    with sweep_progress("Comparing", total=known) as progress:
        for done in range(1, 7):
            progress(done, 6, RefusedSchedule(f"schedule-{done}", "", ()))
    shown = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", stream.getvalue())
    assert "6/6" in shown
    assert "Comparing: schedule-6" in shown
    assert ("0/6" in shown) == (known is not None)


def test_nothing_is_drawn_on_a_pipe(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Logs stay free of bars."""
    with sweep_progress("Comparing", total=2) as progress:
        progress(1, 2, RefusedSchedule("default", "", ()))
    assert capsys.readouterr().err == ""
