"""Whole operands and results for ops without a rule, as their result on parts is unknown."""

from __future__ import annotations

from collections.abc import Collection

from shardy_py.ir.graph.program import Op
from shardy_py.ir.interfaces.ops import ConstantLike, OpSemantics, PropagationBarrier, Trait
from shardy_py.sharding.tensor import TensorSharding
from shardy_py.transforms.finish.reshards.insertion import InsertionPoint, Resharder

_OWN_DIALECT = "sdy."
"""Ops of Shardy itself say what they do to shardings in their own attributes."""


def computes_on_whole_tensors(op: Op, traits: Collection[Trait], semantics: OpSemantics) -> bool:
    """Return whether an op has no rule that says how it computes on parts of tensors."""
    if op.name.startswith(_OWN_DIALECT) or ConstantLike in traits or PropagationBarrier in traits:
        return False
    return semantics.get_sharding_rule(op) is None


def gather_around(resharder: Resharder, op: Op) -> None:
    """Give an op whole operands, and bring its whole results to the shardings that they have.

    Results that are said to be partial stay: nothing makes partial results of whole ones.
    """
    before, after = InsertionPoint.before(op), InsertionPoint.after(op)
    for number, value in enumerate(op.operands):
        target = _whole(resharder, resharder.sharding(value))
        if target is not None:
            op.set_operand(number, resharder.reshard(value, target, before))
    for value in op.results:
        sharding = resharder.sharding(value)
        target = _whole(resharder, sharding)
        if sharding is None or target is None or sharding.unreduced_axes:
            continue
        moved = resharder.reshard(value, sharding, after)
        value.replace_all_uses_with(moved, except_op=moved.owning_op)
        resharder.set_result_sharding(value, target)


def _whole(resharder: Resharder, sharding: TensorSharding | None) -> TensorSharding | None:
    """Return the sharding of the whole tensor on every device; None where a tensor is whole already."""
    if sharding is None or sharding.is_fully_replicated or resharder.mesh(sharding).is_maximal:
        return None
    return TensorSharding.fully_closed(sharding.mesh, sharding.rank)
