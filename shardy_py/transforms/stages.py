"""The form of a pipeline: passes in order, each with the reason why it stands there."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from shardy_py.ir.interfaces.passes import Pass
from shardy_py.transforms.snapshots import SaveModulePass
from shardy_py.values import frozen


@frozen
class Stage:
    """A pass in its place.

    Args:
        item: The pass.
        reason: Why it stands there.
    """

    item: Pass
    reason: str


class PassPipeline(ABC):
    """Several passes under one name; an attrs class whose fields are the options.

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


def snapshot_stage(item: SaveModulePass, reason: str) -> tuple[Stage, ...]:
    """Return the stage of a snapshot; none where it has no directory."""
    return (Stage(item, reason),) if item.directory else ()
