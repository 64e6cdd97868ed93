"""Pipelines and the runner of passes, over programs and over the modules of kernels; nothing else runs passes.

A pipeline is a list of stages: passes in order, each with the reason why it stands there.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any, ClassVar, Protocol, TypeVar

from attrs import evolve

from shardy_py.ir.graph.program import Program
from shardy_py.ir.graph.shardings import load_shardings, store_shardings
from shardy_py.ir.graph.verify import refuse_branches, refuse_deep_nesting
from shardy_py.ir.interfaces.passes import Pass, PassContext
from shardy_py.support.gc_pause import no_garbage_collection
from shardy_py.transforms.snapshots import SaveModulePass, snapshot_writer
from shardy_py.values import frozen

_PassSubject = TypeVar("_PassSubject", contravariant=True)
_PassContext = TypeVar("_PassContext", contravariant=True)


class PassOver(Protocol[_PassSubject, _PassContext]):
    """A pass over a program or over the module of a kernel; a frozen value whose fields are its options."""

    @property
    def name(self) -> str:
        """The name in pipelines and lists of stages."""
        ...

    def run(self, subject: _PassSubject, context: _PassContext, /) -> None:
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


_Subject = TypeVar("_Subject")


def run(
    subject: _Subject,
    passes: Iterable[PassOver[_Subject, Any]],
    context: Any,
    after_pass: Callable[[str, _Subject], None] | None = None,
) -> None:
    """Run passes over a program, or over the module of a kernel, in order, in place.

    Shardings of a program are in its table, before and after.

    Args:
        subject: The program or the module.
        passes: The passes; `shardy_py.transforms.plugin_passes.with_plugin_passes` adds those of plugins.
        context: The context of the passes. One of programs without a function for snapshots gets one.
        after_pass: Called after each pass with its name and the subject.

    Raises:
        ShardyError: a pass cannot handle the subject.
    """
    if isinstance(context, PassContext) and context.dump is None:
        context = evolve(context, dump=snapshot_writer(context.semantics))
    with no_garbage_collection():
        for item in passes:
            item.run(subject, context)
            if after_pass is not None:
                after_pass(item.name, subject)


@no_garbage_collection(keep=True)
@refuse_deep_nesting()
def run_on_attributes(
    program: Program,
    passes: Iterable[Pass],
    context: PassContext,
    after_pass: Callable[[str, Program], None] | None = None,
) -> None:
    """Run passes over a program whose shardings are in the attributes of its ops, before and after.

    Args:
        program: The program.
        passes: The passes.
        context: The context of the passes.
        after_pass: Called after each pass with its name and the program.

    Raises:
        ShardyError: a pass cannot handle the program.
    """
    refuse_branches(program)
    load_shardings(program, context.semantics)
    run(program, passes, context, after_pass)
    store_shardings(program, context.semantics)
