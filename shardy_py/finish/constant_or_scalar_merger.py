"""Merge the copies of constants again that turned out to be sharded alike."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any, ClassVar

from attrs import frozen

from shardy_py.ir.attributes import freeze
from shardy_py.ir.copies import CopyLog
from shardy_py.ir.graph import Op, Program, Region
from shardy_py.ir.interfaces import AsSdyConstant, Broadcast, ConstantLike, OpSemantics, Trait
from shardy_py.ir.passes import PassContext
from shardy_py.ir.types import is_scalar


@frozen
class ConstantOrScalarMergerPass:
    """Replace each constant, and each broadcast of a scalar, by an equal one that comes first in the same region.

    Equal means the same attributes and the same sharding. What is computed from constants stays apart.
    """

    name: ClassVar[str] = "sdy-constant-or-scalar-merger"

    def run(self, program: Program, context: PassContext) -> None:
        """Merge the constants of a program."""
        for op in program.body.ops:
            for region in op.regions:
                _merge(region, program, context.semantics, context.copies)


def _merge(region: Region, program: Program, semantics: OpSemantics, log: CopyLog | None) -> None:
    first: dict[Hashable, Op] = {}
    for block in region.blocks:
        for op in block.ops:
            for inner in op.regions:
                _merge(inner, program, semantics, log)
            if len(op.operands) > 1:
                continue
            traits = semantics.get_traits(op)
            if ConstantLike not in traits and not _is_scalar_expansion(op, traits):
                continue
            name = "sdy.constant" if AsSdyConstant in traits else op.name
            kept = first.setdefault((name, _key(op, program, semantics)), op)
            if kept is not op:
                if log is not None:
                    log.merged(op, kept)
                _replace(op, kept)


def _is_scalar_expansion(op: Op, traits: frozenset[Trait]) -> bool:
    return len(op.operands) == 1 and is_scalar(op.operands[0].type) and Broadcast in traits


def _key(op: Op, program: Program, semantics: OpSemantics) -> Hashable:
    """Return what two ops must have in common to be merged, besides the name."""
    held = semantics.get_sharding_attribute(op)
    return (
        tuple([value.id for value in op.operands]),
        tuple([(value.type, program.sharding(value)) for value in op.results]),
        tuple(_attributes(op, held)),
    )


def _attributes(op: Op, left_out: str) -> Iterator[tuple[str, Any]]:
    """Iterate over the attributes, without the one that holds the sharding: the program's table is newer."""
    for name in sorted(op.attributes):
        if name != left_out:
            yield name, freeze(op.attributes[name])


def _replace(op: Op, kept: Op) -> None:
    for old, new in zip(op.results, kept.results, strict=True):
        old.replace_all_uses_with(new)
    op.erase()
