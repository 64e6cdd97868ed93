"""A real terminal, of a width, for commands in the same process."""

from __future__ import annotations

import os
import re
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")


class Screen:
    """The characters that were written to a terminal."""

    def __init__(self) -> None:
        self.data = b""

    @property
    def raw(self) -> str:
        """All of it, with escape codes."""
        return self.data.decode().replace("\r\n", "\n")

    @property
    def text(self) -> str:
        """All of it without escape codes, with a line for each redraw."""
        return _ESCAPES.sub("", self.raw).replace("\r", "\n")

    @property
    def lines(self) -> list[str]:
        """The lines of the text, without the space at their ends."""
        return [line.rstrip() for line in self.text.split("\n")]


@contextmanager
def terminal(monkeypatch: pytest.MonkeyPatch, width: int, *, name: str = "xterm-256color") -> Iterator[Screen]:
    """Make standard output and error a pseudo-terminal, and take down what is written to it."""
    pty = pytest.importorskip("pty", reason="there are no pseudo-terminals")
    master, slave = pty.openpty()
    screen = Screen()

    def read() -> None:
        while True:
            try:
                data = os.read(master, 65536)
            except OSError:
                return
            if not data:
                return
            screen.data += data

    reader = threading.Thread(target=read)
    reader.start()
    try:
        with monkeypatch.context() as patch:
            for variable in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
                patch.delenv(variable, raising=False)
            patch.setenv("COLUMNS", str(width))
            patch.setenv("TERM", name)
            with os.fdopen(slave, "w", encoding="utf-8", buffering=1) as stream:
                patch.setattr(sys, "stdout", stream)
                patch.setattr(sys, "stderr", stream)
                yield screen
    finally:
        reader.join(timeout=10)
        os.close(master)


def run_in_terminal(monkeypatch: pytest.MonkeyPatch, width: int, *arguments: str, **settings: Any) -> Screen:
    """Run ``shardy`` on a terminal of a width; it must succeed."""
    from shardy_py.cli.app import shardy

    with terminal(monkeypatch, width, **settings) as screen:
        code = 0
        try:
            shardy.main(list(arguments), prog_name="shardy", standalone_mode=False)
        except SystemExit as done:
            code = int(done.code or 0)
    assert code == 0, screen.text
    return screen
