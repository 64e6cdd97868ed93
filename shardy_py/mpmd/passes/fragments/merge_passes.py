"""Passes that merge fragments: inferred ones into others, and those of named computations into scheduling units.

Mirrors mpmd/transforms/common/merge_fragments.cc and absorb_inferred_fragments.cc.
"""

from __future__ import annotations

from typing import ClassVar

from shardy_py.ir.graph.program import Block, Op, Program
from shardy_py.ir.interfaces.ops import ConstantLike
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.mpmd.dialect.calls import block_of, calls_of
from shardy_py.mpmd.dialect.fragments import (
    body_of,
    is_fragment,
    is_inferred_fragment,
    is_user_fragment,
    mesh_of,
    mpmd_functions,
)
from shardy_py.mpmd.dialect.op_names import TRANSFER
from shardy_py.mpmd.passes.fragments.dead_fragments import is_dead
from shardy_py.mpmd.passes.fragments.merging import (
    Condition,
    Positions,
    fragment_users,
    may_merge_forward_with_backward,
    may_merge_inferred,
    may_merge_user,
    merge,
    move_transfers_to_users,
    place_for,
)
from shardy_py.mpmd.passes.fragments.move_transfers import erase_unused_transfers
from shardy_py.values import NoFields, frozen


@frozen
class MergeInferredFragmentsPass:
    """Merge each fragment with its closest user, where at least one of the two is inferred.

    Args:
        merge_any_consumer: Whether another user may do where the closest cannot.
        merge_sideways: Whether the next fragment of the mesh may do, which need not use it.
    """

    name: ClassVar[str] = "mpmd-merge-inferred-fragments"

    merge_any_consumer: bool = False
    merge_sideways: bool = False

    def run(self, program: Program, context: PassContext) -> None:
        """Merge the fragments of each function, the last producer first."""
        for function in mpmd_functions(program):
            merger = _Merger(block_of(function), may_merge_inferred, context)
            merger.run(any_consumer=self.merge_any_consumer, sideways=self.merge_sideways)


class MergeUserFragmentsIntoSchedulingUnitsPass(NoFields):
    """Merge fragments of named computations that follow each other on one mesh, of one stage and microbatch."""

    name: ClassVar[str] = "mpmd-merge-user-fragments-into-scheduling-units"

    def run(self, program: Program, context: PassContext) -> None:
        """Merge the fragments of each function, the last producer first."""
        for function in mpmd_functions(program):
            _Merger(block_of(function), may_merge_user, context).run(any_consumer=False, sideways=False)


class MergeForwardWithBackwardPass(NoFields):
    """Merge forward fragments with backward ones that come next on their mesh."""

    name: ClassVar[str] = "mpmd-merge-forward-with-backward"

    def run(self, program: Program, context: PassContext) -> None:
        """Merge the fragments of each function, the last forward one first."""
        for function in mpmd_functions(program):
            merger = _Merger(block_of(function), may_merge_forward_with_backward, context)
            merger.run(any_consumer=False, sideways=True)


class _Merger:
    """Merges the fragments of one block."""

    def __init__(self, block: Block, condition: Condition, context: PassContext) -> None:
        self.block = block
        self.condition = condition
        self.semantics = context.semantics
        self.positions = Positions(block)

    def run(self, *, any_consumer: bool, sideways: bool) -> None:
        """Visit all fragments from the end; a merged one is visited again."""
        op = self.block.last
        while op is not None:
            if not is_fragment(op):
                op = op.prev
                continue
            if is_dead(op, self.semantics):
                previous = op.prev
                op.erase()
                self.positions.changed()
                op = previous
                continue
            merged = self._merge(op, any_consumer=any_consumer, sideways=sideways)
            op = op.prev if merged is None else merged

    def _merge(self, producer: Op, *, any_consumer: bool, sideways: bool) -> Op | None:
        """Merge a fragment with a user of it, and return the merged one; None where there is none to merge with."""
        if sideways:
            following = next_of_mesh(producer)
            candidates = [] if following is None else [following]
        else:
            candidates = sorted(fragment_users(producer), key=self.positions.of)
            candidates = candidates if any_consumer else candidates[:1]
        for consumer in candidates:
            if not self.condition(producer, consumer):
                continue
            anchor = place_for(producer, consumer, self.positions)
            if anchor is not None:
                merged = merge(producer, consumer, anchor)
                self.positions.changed()
                return merged
        return None


def next_of_mesh(op: Op) -> Op | None:
    """Return the next fragment of the mesh of one."""
    mesh, following = mesh_of(op), op.next
    while following is not None and not (is_fragment(following) and mesh_of(following) == mesh):
        following = following.next
    return following


@frozen
class AbsorbInferredFragmentsPass:
    """Merge inferred fragments into root fragments: those of named computations, and those at the ends of a function.

    Args:
        absorb_on_entry_point_function: Whether this is done in entry points, too, and not only in what they call.
    """

    name: ClassVar[str] = "mpmd-absorb-inferred-fragments"

    absorb_on_entry_point_function: bool = False

    def run(self, program: Program, context: PassContext) -> None:
        """Absorb in each function until nothing changes."""
        called = calls_of(program)
        for function in mpmd_functions(program):
            is_entry = (
                function.attributes["sym_name"] not in called
                and function.attributes.get("sym_visibility", "public") == "public"
            )
            if not is_entry or self.absorb_on_entry_point_function:
                erase_unused_transfers(block_of(function))
                positions = Positions(block_of(function))
                while _absorb_one(block_of(function), positions):
                    positions.changed()
                for op in filter(is_fragment, block_of(function).ops):
                    _constants_first(op, context)


def _constants_first(op: Op, context: PassContext) -> None:
    """Move the constants of a fragment to its start, as MLIR's rewriter does."""
    block, anchor = body_of(op), None
    for inner in list(block.ops):
        if context.semantics.has_trait(inner, ConstantLike):
            if inner.prev is not anchor:
                block.remove(inner)
                block.insert_after(anchor, inner)
            anchor = inner


def _absorb_one(block: Block, positions: Positions) -> bool:
    """Merge one inferred fragment into a root; return whether there was one."""
    for root in reversed(list(block.ops)):
        if (
            is_fragment(root)
            and _is_root(root)
            and (_absorb_consumer(root, positions) or _absorb_producer(root, positions))
        ):
            return True
    return False


def _is_root(op: Op) -> bool:
    if is_user_fragment(op):
        return True
    uses_fragment = any(is_fragment(value.defining_op) for value in op.operands)
    return not uses_fragment or not fragment_users(op)


def _absorb_producer(root: Op, positions: Positions) -> bool:
    """Merge an inferred producer whose closest user is the root."""
    producers = {
        op.id: op for value in root.operands if is_inferred_fragment(op := value.defining_op) and op is not None
    }
    for producer in producers.values():
        if not may_merge_inferred(producer, root):
            continue
        move_transfers_to_users(producer, positions)
        users = [user for value in producer.results for user, _ in value.uses]
        if positions.first(users) is root:
            merge(producer, root, root, leading=root)
            return True
    return False


def _absorb_consumer(root: Op, positions: Positions) -> bool:
    """Merge an inferred consumer whose closest producer is the root."""
    for consumer in sorted(fragment_users(root), key=positions.of):
        if not is_inferred_fragment(consumer) or not may_merge_inferred(root, consumer):
            continue
        _move_transfers_before(root, consumer, positions)
        producers = [op for value in consumer.operands if (op := value.defining_op) is not None]
        if positions.last(producers) is root:
            merge(root, consumer, root, leading=root)
            return True
    return False


def _move_transfers_before(root: Op, consumer: Op, positions: Positions) -> None:
    """Move the transfers that a consumer uses to just behind what they transfer, if that is before the root."""
    block = root.parent
    assert block is not None
    for value in consumer.operands:
        op = value.defining_op
        if op is None or op.name != TRANSFER or positions.of(op) < positions.of(root):
            continue
        source = op.operands[0].defining_op
        if source is root or (source is not None and positions.of(source) > positions.of(root)):
            continue
        block.remove(op)
        block.insert_after(source, op)
        positions.changed()
