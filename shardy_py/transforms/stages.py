"""The form of a pipeline: passes in order, each with the reason why it stands there."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, ClassVar, Protocol, TypeVar

from shardy_py.ir.interfaces.passes import Pass
from shardy_py.transforms.snapshots import SaveModulePass
from shardy_py.values import frozen

_Subject = TypeVar("_Subject", contravariant=True)
_Context = TypeVar("_Context", contravariant=True)


class PassOver(Protocol[_Subject, _Context]):
    """A pass over a program or over the module of a kernel; a frozen value whose fields are its options."""

    @property
    def name(self) -> str:
        """The name in pipelines and lists of stages."""
        ...

    def run(self, subject: _Subject, context: _Context, /) -> None:
        """Rewrite the subject in place."""
        ...


@frozen
class Stage:
    """A pass of a pipeline.

    Args:
        item: The pass.
        reason: Why it stands where it stands.
    """

    item: PassOver[Any, Any]
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
        return passes_of(self.stages())


def passes_of(stages: Iterable[Stage]) -> tuple[Any, ...]:
    """Return the passes of stages, in order."""
    return tuple(stage.item for stage in stages)


def snapshot_stage(item: SaveModulePass, reason: str) -> tuple[Stage, ...]:
    """Return the stage of a snapshot; none where it has no directory."""
    return (Stage(item, reason),) if item.directory else ()
