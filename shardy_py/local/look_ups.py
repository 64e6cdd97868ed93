"""Gathers and scatters of sharded operands: devices send the elements that are looked up, not the whole operand.

Such an op takes the place of an all-gather before it, if its local form combines the results itself.
"""

from __future__ import annotations

from math import prod

from attrs import evolve, field

from shardy_py.ir.graph.op_names import ALL_GATHER
from shardy_py.ir.graph.program import Op, Value
from shardy_py.ir.graph.types import static_shape
from shardy_py.ir.interfaces.local import CannotLocalize, Combined, Localize, Shard, local_form
from shardy_py.ir.interfaces.ops import OpSemantics
from shardy_py.values import define


def gathered_source(op: Op) -> Value | None:
    """Return the operand of the all-gather that makes the first operand of an op, if nothing else uses it, or None."""
    producer = op.operands[0].defining_op if op.operands else None
    if (
        producer is None
        or producer.name != ALL_GATHER
        or producer.parent is not op.parent
        or len(op.operands[0].uses) > 1
    ):
        return None
    return producer.operands[0]


@define
class WaitingGathers:
    """The all-gathers whose only user may look up what it needs; they are converted with it.

    Attributes:
        semantics: What is known about ops.
    """

    semantics: OpSemantics
    _by_result: dict[int, Op] = field(factory=dict, init=False)

    def add(self, op: Op) -> bool:
        """Let an op wait if it is an all-gather for an op with a local form that may look up, and return whether."""
        if not may_wait(op) or local_form(op.results[0].users[0], self.semantics) is None:
            return False
        self._by_result[op.results[0].id] = op
        return True

    def pop(self, op: Op) -> Op | None:
        """Return the all-gather that waits for an op, and forget it; None where there is none."""
        return self._by_result.pop(op.operands[0].id, None) if op.operands else None


def may_wait(op: Op) -> bool:
    """Return whether an op is an all-gather for one op with smaller results, which may look up what it needs."""
    if op.name != ALL_GATHER or len(op.results[0].uses) != 1:
        return False
    (user,) = op.results[0].users
    if gathered_source(user) is not op.operands[0] or op.operands[0].id in {item.id for item in user.operands}:
        return False
    # What is summed goes around twice.
    return 2 * sum(prod(static_shape(value.type) or (0,)) for value in user.results) <= prod(op.results[0].shape)


def look_up(op: Op, shard: Shard, source: Shard, form: Localize | None) -> Combined | None:
    """Return the results of an op on the parts of its first operand, or None where it needs the operand whole.

    Args:
        op: The op.
        shard: The op with its other operands on the device.
        source: The all-gather behind which the op stands, with its operand on the device.
        form: The local form of the op.
    """
    if form is None:
        return None
    last = shard.emit.block.last
    parts = evolve(
        shard,
        operands=[source.operands[0], *shard.operands[1:]],
        operand_shardings=[source.operand_shardings[0], *shard.operand_shardings[1:]],
    )
    try:
        results = form(op, parts)
    except CannotLocalize:
        results = None
    if isinstance(results, Combined):
        return results
    shard.emit.erase_after(last)
    return None
