"""Merging of two fragments of one mesh.

Mirrors mpmd/transforms/common/merge_fragments.cc.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from copy import copy

from shardy_py.ir.graph.program import Block, Op, Region, Value
from shardy_py.ir.graph.types import Type
from shardy_py.mpmd.dialect.fragments import (
    body_of,
    call_counter_of,
    is_fragment,
    is_inferred_fragment,
    is_user_fragment,
    mesh_of,
    origins_of,
    single_transpose_count,
    split_kind,
    stage_of,
    terminator_of,
    unsigned,
)
from shardy_py.mpmd.dialect.op_names import CALL_COUNTER, INFERRED_BY, ORIGIN, RETURN, STAGE, TRANSFER

Condition = Callable[[Op, Op], bool]
"""Returns whether a producer, the first, may be merged with a consumer."""


class Positions:
    """The positions of the ops of a block, counted when they are asked for.

    Args:
        block: The block.
    """

    def __init__(self, block: Block) -> None:
        self._block = block
        self._numbers: dict[int, int] | None = None

    def of(self, op: Op) -> int:
        """Return the position of an op of the block."""
        if self._numbers is None or op.id not in self._numbers:
            self._numbers = {item.id: number for number, item in enumerate(self._block.ops)}
        return self._numbers[op.id]

    def changed(self) -> None:
        """Forget the positions: ops were moved or made."""
        self._numbers = None

    def first(self, ops: Iterable[Op]) -> Op | None:
        """Return the op that comes first."""
        return min(ops, key=self.of, default=None)

    def last(self, ops: Iterable[Op]) -> Op | None:
        """Return the op that comes last."""
        return max(ops, key=self.of, default=None)


def can_share_stage(first: Op, second: Op) -> bool:
    """Return whether two fragments are of one stage, or one of them of none."""
    stages = stage_of(first), stage_of(second)
    return None in stages or stages[0] == stages[1]


def may_merge_inferred(producer: Op, consumer: Op) -> bool:
    """Return whether two fragments may be merged as at least one of them is inferred."""
    if not (is_inferred_fragment(producer) or is_inferred_fragment(consumer)):
        return False
    if {split_kind(producer), split_kind(consumer)} == {"keep", "drop"}:
        return False
    return mesh_of(producer) == mesh_of(consumer) and can_share_stage(producer, consumer)


def may_merge_user(producer: Op, consumer: Op) -> bool:
    """Return whether two fragments of named computations are one scheduling unit."""
    if not (is_user_fragment(producer) and is_user_fragment(consumer)) or mesh_of(producer) != mesh_of(consumer):
        return False
    count = single_transpose_count(producer)
    if count is None or count != single_transpose_count(consumer):
        return False
    counters = call_counter_of(producer), call_counter_of(consumer)
    has_one_counter = None in counters or counters[0] == counters[1]
    return has_one_counter and can_share_stage(producer, consumer) and split_kind(producer) == split_kind(consumer)


def may_merge_forward_with_backward(producer: Op, consumer: Op) -> bool:
    """Return whether a forward fragment may be merged with a backward one of its stage that uses it."""
    if not (is_user_fragment(producer) and is_user_fragment(consumer)) or not can_share_stage(producer, consumer):
        return False
    return any(value.defining_op is producer for value in consumer.operands) and (
        single_transpose_count(producer),
        single_transpose_count(consumer),
    ) == (0, 1)


def place_for(producer: Op, consumer: Op, positions: Positions) -> Op | None:
    """Return which of two fragments the merged one stands at, or None where it cannot stand anywhere.

    It stands at the consumer where nothing in between uses the producer, else at the producer where all other operands
    of the consumer are there already.
    """
    block = producer.parent
    assert block is not None
    end = positions.of(consumer)
    users = [user for value in producer.results for user, _ in value.uses if user is not consumer]
    if all(positions.of(_in_block(user, block)) > end for user in users):
        return consumer
    start = positions.of(producer)
    for value in consumer.operands:
        op = value.defining_op
        if op is not None and op is not producer and positions.of(op) > start:
            return None
    return producer


def _in_block(op: Op, block: Block) -> Op:
    while op.parent is not block:
        parent = op.parent_op
        assert parent is not None
        op = parent
    return op


def merge(producer: Op, consumer: Op, anchor: Op, *, leading: Op | None = None) -> Op:
    """Put one fragment in the place of two: the ops of the producer, then those of the consumer.

    Operands are those of the producer, then the new ones of the consumer; results those of the producer that something
    else uses, then those of the consumer.

    Args:
        producer: The first fragment.
        consumer: The second one.
        anchor: Where the merged one stands, one of the two.
        leading: The one whose other attributes stay; by default that of a named computation, else the producer.
    """
    program, leading = producer.program, leading or _leading(producer, consumer)
    operands, position_of = _merged_operands(producer, consumer)
    used_results = [value for value in producer.results if any(user is not consumer for user, _ in value.uses)]
    block = Block(program, [_argument_type(value, producer, consumer) for value in operands])
    _replace_arguments(producer, block, position_of, {})
    produced = {
        value.id: returned for value, returned in zip(producer.results, terminator_of(producer).operands, strict=True)
    }
    _replace_arguments(consumer, block, position_of, produced)
    returned = [*(produced[value.id] for value in used_results), *terminator_of(consumer).operands]
    for fragment in (producer, consumer):
        terminator_of(fragment).erase()
        for op in list(body_of(fragment).ops):
            body_of(fragment).remove(op)
            block.append(op)
    block.append(Op(program, RETURN, returned))
    merged = Op(
        program,
        producer.name,
        operands,
        [value.type for value in (*used_results, *consumer.results)],
        copy(leading.attributes),
        [Region([block])],
    )
    _set_attributes(merged, producer, consumer, leading)
    assert anchor.parent is not None
    anchor.parent.insert_before(anchor, merged)
    for value, new in zip((*used_results, *consumer.results), merged.results, strict=True):
        _replace_except(value, new, consumer)
    consumer.erase()
    producer.erase()
    return merged


def _leading(producer: Op, consumer: Op) -> Op:
    """Return the fragment whose other attributes stay: that of a named computation."""
    return consumer if is_inferred_fragment(producer) and is_user_fragment(consumer) else producer


def _merged_operands(producer: Op, consumer: Op) -> tuple[list[Value], dict[int, int]]:
    operands: list[Value] = []
    position_of: dict[int, int] = {}
    others = [value for value in consumer.operands if value.defining_op is not producer]
    values = [*producer.operands, *others]
    is_chain = len(producer.operands) == 1 and len(producer.results) == 1 and len(others) < len(consumer.operands)
    if is_chain and producer.results[0].has_one_use:
        # As in the reference, a chain keeps the order of the consumer.
        values = [producer.operands[0] if value.defining_op is producer else value for value in consumer.operands]
    for value in values:
        if value.id not in position_of:
            position_of[value.id] = len(operands)
            operands.append(value)
    return operands, position_of


def _argument_type(value: Value, *fragments: Op) -> Type:
    """Return the type in the body of an operand of one of some fragments."""
    pairs = [pair for item in fragments for pair in zip(item.operands, body_of(item).arguments, strict=True)]
    return next(argument.type for operand, argument in pairs if operand is value)


def _replace_arguments(fragment: Op, block: Block, position_of: dict[int, int], produced: dict[int, Value]) -> None:
    """Replace the arguments of a fragment by those of the merged one, or by what the producer returns."""
    for value, argument in zip(fragment.operands, body_of(fragment).arguments, strict=True):
        argument.replace_all_uses_with(produced.get(value.id) or block.arguments[position_of[value.id]])


def _replace_except(value: Value, new: Value, consumer: Op) -> None:
    if value.defining_op is consumer:
        value.replace_all_uses_with(new)
        return
    for user, number in list(value.uses):
        if user is not consumer:
            user.set_operand(number, new)


def _set_attributes(merged: Op, producer: Op, consumer: Op, leading: Op) -> None:
    attributes = merged.attributes
    origins = dict.fromkeys((*origins_of(producer), *origins_of(consumer)))
    attributes[ORIGIN] = tuple(item.attribute for item in origins)
    stage = stage_of(producer) if stage_of(producer) is not None else stage_of(consumer)
    if stage is not None:
        attributes[STAGE] = stage
    _set_counter(merged, producer, consumer)
    both = (producer, consumer) if leading is producer else (consumer, producer)
    makers = [item for op in both for item in op.attributes.get(INFERRED_BY, ())]
    if origins and INFERRED_BY in attributes:
        del attributes[INFERRED_BY]
    elif makers and not origins:
        attributes[INFERRED_BY] = tuple(dict.fromkeys(makers))


def _set_counter(merged: Op, producer: Op, consumer: Op) -> None:
    """Set the microbatch: the one that is there, that of the named computation where they differ, else none."""
    counters = call_counter_of(producer), call_counter_of(consumer)
    if counters[0] == counters[1] or None in counters:
        counter = counters[0] if counters[0] is not None else counters[1]
    elif is_user_fragment(producer) != is_user_fragment(consumer):
        counter = counters[0] if is_user_fragment(producer) else counters[1]
    else:
        counter = None
    if counter is not None:
        merged.attributes[CALL_COUNTER] = unsigned(counter)
    elif CALL_COUNTER in merged.attributes:
        del merged.attributes[CALL_COUNTER]


def fragment_users(op: Op) -> list[Op]:
    """Return the fragments that use a fragment directly, each once."""
    users = {user.id: user for value in op.results for user, _ in value.uses if is_fragment(user)}
    return list(users.values())


def move_transfers_to_users(op: Op, positions: Positions) -> None:
    """Move the transfers of a fragment just before their first users."""
    block = op.parent
    assert block is not None
    for value in op.results:
        for user, _ in list(value.uses):
            if user.name != TRANSFER:
                continue
            first = positions.first(_in_block(item, block) for item, _ in user.results[0].uses)
            if first is not None and user.next is not first:
                block.remove(user)
                block.insert_before(first, user)
                positions.changed()
