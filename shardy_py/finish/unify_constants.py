"""Unite equal constants of a function at its start, as MLIR's canonicalizer does before it applies any pattern."""

from __future__ import annotations

from collections.abc import Hashable

from attrs import define, field

from shardy_py.ir.graph import Block, Op, Program
from shardy_py.ir.interfaces import ConstantLike, IsolatedFromAbove, OpSemantics

_KEPT_APART = "sdy.constant"
"""Constants that were split per use; MLIR does not know that they are constants, so that they stay as they are."""


def unify_constants(program: Program, semantics: OpSemantics) -> None:
    """Move every constant to the start of its function, the last one first, and let equal ones be one.

    Shardings do not matter: the one found first stays with the sharding it has. Constants that stand at the start
    already, or behind one that does, keep their place. Regions that cannot use values from outside have their own.
    """
    for function in program.functions.values():
        _visit_isolated(program, function, semantics)


@define
class _Scope:
    """Where constants are collected.

    Attributes:
        entry: The block that gets them.
        kept: What tells constants apart, to the constant found first.
        placed: The ids of those that stand at the start.
    """

    entry: Block
    kept: dict[Hashable, Op] = field(factory=dict)
    placed: set[int] = field(factory=set)

    def add(self, op: Op) -> Op:
        """Move a constant to the start, if it is the first of its kind; return the first of its kind."""
        known = self.kept.setdefault(_key(op), op)
        if known is not op:
            return known
        self.placed.add(op.id)
        stands_at_start = op.prev is None or op.prev.id in self.placed
        if op.parent is not self.entry or not stands_at_start:
            _move_to_start(op, self.entry)
        return op


def _visit_isolated(program: Program, op: Op, semantics: OpSemantics) -> None:
    for region in op.regions:
        if not region.blocks:
            continue
        scope = _Scope(region.blocks[0])
        for block in region.blocks:
            _visit(program, block, scope, semantics)


def _visit(program: Program, block: Block, scope: _Scope, semantics: OpSemantics) -> None:
    for op in list(block.ops):
        traits = semantics.get_traits(op)
        if ConstantLike in traits and op.name != _KEPT_APART and not op.operands and len(op.results) == 1:
            _unify(program, op, scope)
        elif IsolatedFromAbove in traits:
            _visit_isolated(program, op, semantics)
        else:
            for region in op.regions:
                for inner_block in region.blocks:
                    _visit(program, inner_block, scope, semantics)


def _unify(program: Program, op: Op, scope: _Scope) -> None:
    first = scope.add(op)
    if first is not op:
        op.results[0].replace_all_uses_with(first.results[0])
        program.shardings.pop(op.results[0].id, None)
        op.erase()


def _key(op: Op) -> Hashable:
    """Return what equal constants have in common: all but the attributes that other dialects put on the op."""
    own = tuple((name, value) for name, value in sorted(op.attributes.items()) if "." not in name)
    return (op.name, own, op.results[0].type)


def _move_to_start(op: Op, entry: Block) -> None:
    if op.parent is not None:
        op.parent.remove(op)
    entry.insert_after(None, op)
