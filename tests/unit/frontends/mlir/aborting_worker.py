"""A reader that aborts on whatever it reads."""

from __future__ import annotations

import os

from shardy_py.support.processes.serve import ShowStep, serve


def main() -> None:
    """Abort."""
    serve(_answer)


def _answer(request: bytes, show: ShowStep) -> bytes:
    os.abort()
