"""A worker of a command that reports two steps."""

from __future__ import annotations

from typing import Any

from shardy_py.cli.child import answer_parent
from shardy_py.cli.progress import ShowProgress


def main() -> None:
    """Answer the request of a test."""
    answer_parent(_answer)


def _answer(request: Any, show: ShowProgress) -> Any:
    show(1, 4, "Compiling")
    show(2, 4, "Running")
    return [request, "done"]
