"""Unite equal constants of a function at its start, as MLIR's canonicalizer does before it applies any pattern."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING

from attrs import field

from shardy_py.ir.graph.op_names import CONSTANT
from shardy_py.ir.graph.program import Block, Op, Program
from shardy_py.ir.graph.walk import names_with_trait, ops_among
from shardy_py.ir.interfaces.ops import ConstantLike, IsolatedFromAbove, OpSemantics, UnitedByMlir
from shardy_py.sharding.tensor import TensorSharding
from shardy_py.values import define

if TYPE_CHECKING:
    from shardy_py.transforms.constant_copies import CopyLog


def unify_constants(program: Program, semantics: OpSemantics, log: CopyLog | None = None) -> None:
    """Move every constant to the start of its function, the last one first, and let equal ones be one.

    Constants that MLIR's canonicalizer knows are united whatever their shardings, as it does: the one found first stays
    with the sharding it has. Those of other dialects were split per use, and stay apart where they are sharded
    differently. Constants that stand at the start already, or behind one that does, keep their place. Regions that
    cannot use values from outside have their own.
    """
    if not _has_any(program, semantics):
        return
    for function in program.functions.values():
        _visit_isolated(program, function, semantics, log)


def _has_any(program: Program, semantics: OpSemantics) -> bool:
    # Constants that were split per use stay as they are: MLIR does not know that they are constants.
    names = names_with_trait(program, semantics, ConstantLike) - {CONSTANT}
    return any(ConstantLike in semantics.get_traits(op) for op in ops_among(program, names))


@define
class _Scope:
    """A scope of constants: an isolated region, in whose entry block they are collected.

    Attributes:
        entry: The block that gets them.
        log: The record of united constants.
        kept: The key of equal constants to the first of them.
        placed: The ids of those that stand at the start.
    """

    entry: Block
    log: CopyLog | None
    kept: dict[Hashable, Op] = field(factory=dict)
    placed: set[int] = field(factory=set)

    def add(self, op: Op, key: Hashable) -> Op:
        """Move a constant to the start, if it is the first of its kind; return the first of its kind."""
        known = self.kept.setdefault(key, op)
        if known is not op:
            return known
        self.placed.add(op.id)
        stands_at_start = op.prev is None or op.prev.id in self.placed
        if op.parent is not self.entry or not stands_at_start:
            _move_to_start(op, self.entry)
        return op


def _visit_isolated(program: Program, op: Op, semantics: OpSemantics, log: CopyLog | None) -> None:
    for region in op.regions:
        if not region.blocks:
            continue
        scope = _Scope(region.blocks[0], log)
        for block in region.blocks:
            _visit(program, block, scope, semantics)


def _visit(program: Program, block: Block, scope: _Scope, semantics: OpSemantics) -> None:
    for op in list(block.ops):
        traits = semantics.get_traits(op)
        if ConstantLike in traits and op.name != CONSTANT and not op.operands and len(op.results) == 1:
            _unify(program, op, scope, _key(op, None if UnitedByMlir in traits else program.sharding(op.results[0])))
        elif IsolatedFromAbove in traits:
            _visit_isolated(program, op, semantics, scope.log)
        else:
            for region in op.regions:
                for inner_block in region.blocks:
                    _visit(program, inner_block, scope, semantics)


def _unify(program: Program, op: Op, scope: _Scope, key: Hashable) -> None:
    first = scope.add(op, key)
    if first is not op:
        if scope.log is not None:
            scope.log.merged(op, first)
        op.results[0].replace_all_uses_with(first.results[0])
        program.shardings.pop(op.results[0].id, None)
        op.erase()


def _key(op: Op, sharding: TensorSharding | None) -> Hashable:
    """Return the key of equal constants: all but the attributes of other dialects."""
    own = tuple((name, value) for name, value in sorted(op.attributes.items()) if "." not in name)
    return (op.name, own, op.results[0].type, sharding)


def _move_to_start(op: Op, entry: Block) -> None:
    if op.parent is not None:
        op.parent.remove(op)
    entry.insert_after(None, op)
