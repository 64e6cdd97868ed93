"""Pipelines: tuples of passes, each with the reason why it stands where it stands."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from attrs import frozen

from shardy_py.ir.graph import Program
from shardy_py.ir.passes import Pass, PassContext


@frozen
class Stage:
    """A pass in its place.

    Args:
        item: The pass.
        reason: Why it stands there.
    """

    item: Pass
    reason: str


@frozen
class SaveModulePass:
    """Write a snapshot of the program, or nothing where no directory is given.

    Args:
        directory: Where to.
        label: What the file is called, besides its number.
        index: Its number.
    """

    name: ClassVar[str] = "sdy-save-module"

    directory: str = ""
    label: str = "module"
    index: int = 0

    def run(self, program: Program, context: PassContext) -> None:
        """Write the file; the program stays as it is."""
        if self.directory:
            context.write_snapshot(program, self.directory, self.label, index=self.index)


class PassPipeline(ABC):
    """Several passes under one name; an attrs class whose fields are the options. It is a pass itself.

    Attributes:
        name: The name in the text of pipelines, the same as upstream's.
    """

    __slots__ = ()

    name: ClassVar[str]

    @abstractmethod
    def stages(self) -> tuple[Stage, ...]:
        """Return the passes in order, with reasons."""

    @property
    def passes(self) -> tuple[Pass, ...]:
        """The passes in order."""
        return tuple(stage.item for stage in self.stages())

    def run(self, program: Program, context: PassContext) -> None:
        """Run all passes."""
        for item in self.passes:
            item.run(program, context)
