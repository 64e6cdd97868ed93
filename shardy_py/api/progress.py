"""Progress of a propagation: its stages, and how many of its steps are done."""

from __future__ import annotations

from collections.abc import Callable

from shardy_py.propagation.engine import StageCallback
from shardy_py.values import define

ProgressCallback = Callable[[int, int, str], None]
"""Receiver of the number of steps that are done, of how many there are, and of the name of the stage."""


@define
class RunProgress:
    """The steps of a run: to read the module, each pass, and to write it.

    Args:
        on_stage: Called with the name of each stage as it starts.
        on_progress: Called as a stage starts, and after each step.
        total: The number of steps.
        done: The number of those that are done.
        name: The name of the stage.
    """

    on_stage: StageCallback | None
    on_progress: ProgressCallback | None
    total: int = 0
    done: int = 0
    name: str = ""

    def stage(self, name: str) -> None:
        """Start a stage."""
        self.name = name
        if self.on_stage is not None:
            self.on_stage(name)
        self._tell()

    def finish_step(self) -> None:
        """Record that a step is done."""
        self.done += 1
        self._tell()

    def _tell(self) -> None:
        if self.on_progress is not None:
            self.on_progress(self.done, self.total, self.name)
