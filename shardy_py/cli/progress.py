"""Progress of commands that take long, as a bar on stderr; nothing is drawn where that is no terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from shardy_py.values import define

STAGES = {
    "import": "Reading the module",
    "convert": "Converting to HLO and back",
    "prepare": "Preparing",
    "compile": "Compiling",
    "solve": "Propagating",
    "finish": "Finishing",
    "write": "Writing shardings back",
}
"""The words for the stages of a propagation."""

_BAR = 20


class ShowProgress(Protocol):
    """Receiver of the number of finished steps, of the total, and of the name of the next step."""

    def __call__(self, done: int, total: int | None, what: str = "") -> None:
        """Show it."""
        ...


@contextmanager
def progress_bar(label: str, *, total: int | None = None, enabled: bool = True) -> Iterator[ShowProgress]:
    """Show a bar with the number of steps that are done, of how many, and the time that is left.

    Args:
        label: What is done.
        total: How many steps there are, where that is known.
        enabled: Whether anything is drawn on a terminal.
    """
    if not enabled or sys.stderr is None or not sys.stderr.isatty():
        yield show_nothing
        return
    # It takes longer to import than a small program to propagate.
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
    from rich.table import Column

    text = TextColumn("{task.description}", table_column=Column(overflow="fold"), markup=False)
    columns = (BarColumn(_BAR), MofNCompleteColumn(), TimeRemainingColumn(), text)
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(label, total=total)

        def show(done: int, total: int | None, what: str = "") -> None:
            description = f"{label}: {what}" if what and label else what or label
            bar.update(task, completed=done, total=total, description=description)

        yield show
        bar.refresh()


@define
class Steps:
    """The steps of a command: those of a propagation where there is one, and those with names of its own.

    Args:
        show: Shows them.
        count: How many steps there are besides those of the propagation.
        total: How many there are in all, as far as that is known.
        done: How many are done.
    """

    show: ShowProgress
    count: int
    total: int | None = None
    done: int = 0

    def on_progress(self, done: int, total: int, stage: str) -> None:
        """Show the steps of a propagation, as `propagate` reports them."""
        self.done, self.total = done, total + self.count
        self.show(done, self.total, STAGES.get(stage, stage))

    def start(self, what: str) -> None:
        """Start the next step."""
        self.show(self.done, self.total, what)
        self.done += 1


@contextmanager
def step_bar(count: int, *, enabled: bool = True) -> Iterator[Steps]:
    """Show which step of a command runs, and how many are done of how many; the propagation tells its own number.

    Args:
        count: How many steps there are besides those of a propagation.
        enabled: Whether anything is drawn on a terminal.
    """
    with progress_bar("", total=count or None, enabled=enabled) as show:
        yield Steps(show, count, count)


def show_nothing(done: int, total: int | None, what: str = "") -> None:
    """Show nothing."""
