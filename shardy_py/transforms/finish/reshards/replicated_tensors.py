"""Reshards of tensors of which each device needs all elements of a dimension.

These are the tensors of ops without a rule, tensors from outside that a region reads, and those that are sliced or
updated in part. The last as in spmd_partitioner.cc::HandleDynamicSlice and ::HandleDynamicUpdateSlice: one index, and a
constant part of one shard, are changed where they are.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from shardy_py.ir.graph.attributes import DenseElements
from shardy_py.ir.graph.op_names import RESHARD
from shardy_py.ir.graph.program import Op, Value
from shardy_py.ir.graph.types import static_shape
from shardy_py.ir.graph.walk import all_ops
from shardy_py.ir.interfaces.ops import ConstantLike, OpSemantics, PropagationBarrier, Trait
from shardy_py.sharding.axes import axes_size
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.tensor import TensorSharding
from shardy_py.support.identity import identity
from shardy_py.transforms.finish.reshards.insertion import InsertionPoint, Resharder, rank_of

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


def captured_tensors(op: Op) -> list[Value]:
    """Return the tensors with dimensions that the regions of an op use and that are defined outside, each once.

    What ops inside other ops use counts, too. Operands of the op count only where the regions use them themselves.
    """
    read = [value for inner in _inside(op) for value in inner.operands if rank_of(value)]
    if not read:
        return []
    inside = {identity(inner) for inner in op.walk()}
    return list({value.id: value for value in read if identity(value.owning_op) not in inside}.values())


def _inside(op: Op) -> Iterator[Op]:
    for region in op.regions:
        for block in region.blocks:
            yield from block.walk()


def replicate_captures(resharder: Resharder, semantics: OpSemantics) -> None:
    """Reshard the sharded tensors that regions of ops with a rule capture, so that every device has all of them.

    Such an op runs its region for the elements of its shards, and the region counts the elements of the whole tensor.
    The reference does not look into regions; those of StableHLO capture no tensors with dimensions.

    Args:
        resharder: The program.
        semantics: What is known about ops.
    """
    for op in all_ops(resharder.program):
        if op.regions and op.parent is not None and semantics.get_data_flow(op) is None:
            _replicate(resharder, semantics, op)


def _replicate(resharder: Resharder, semantics: OpSemantics, op: Op) -> None:
    # Functions have no rule, and are not searched.
    for value in captured_tensors(op) if semantics.get_sharding_rule(op) is not None else ():
        sharding = resharder.sharding(value)
        if sharding is None or (sharding.is_fully_replicated and not sharding.unreduced_axes):
            continue
        replicated = TensorSharding.fully_closed(sharding.mesh, sharding.rank)
        moved = resharder.reshard(value, replicated, InsertionPoint.before(op))
        for inner in list(_inside(op)):
            for number, operand in enumerate(inner.operands):
                if operand is value:
                    inner.set_operand(number, moved)


def divides_slices(resharder: Resharder, op: Op) -> bool:
    """Return whether the result of a slice is divided along a dimension of which it is a part."""
    sharding = resharder.sharding(op.results[0])
    operand, result = static_shape(op.operands[0].type), static_shape(op.results[0].type)
    if sharding is None or operand is None or result is None or len(operand) != len(result):
        return False
    mesh = resharder.mesh(sharding)
    dims = zip(sharding.dim_shardings, operand, result, strict=True)
    return any(axes_size(dim.axes, mesh) > 1 and size != sliced for dim, size, sliced in dims)


def gather_updated(resharder: Resharder, op: Op) -> bool:
    """Gather the first operand of an update along the dimensions of which it may change several shards.

    The result goes back to the sharding that it has.

    Args:
        resharder: The program.
        op: The update: of its first operand, by its second, at places that the others give.

    Returns:
        Whether anything was inserted.
    """
    target, result = op.operands[0], op.results[0]
    sharding = resharder.sharding(target)
    wanted = resharder.sharding(result)
    if sharding is None or wanted is None:
        return False
    dims = _changed_dims(op, sharding, resharder.mesh(sharding))
    if not dims:
        return False
    producer = target.defining_op
    if producer is not None and producer.name == RESHARD and target.has_one_use:
        # What the op was about to get is brought to what it needs at once.
        target = producer.operands[0]
    op.set_operand(0, resharder.reshard(target, sharding.with_whole_dims(dims), InsertionPoint.before(op)))
    moved = resharder.reshard(result, wanted, InsertionPoint.after(op))
    result.replace_all_uses_with(moved, except_op=moved.owning_op)
    resharder.set_result_sharding(result, wanted.with_whole_dims(dims))
    return True


def _changed_dims(op: Op, sharding: TensorSharding, mesh: Mesh) -> Sequence[int]:
    """Return the divided dimensions of which a part is changed, if more than one shard of one of them may be."""
    operand, update = static_shape(op.operands[0].type), static_shape(op.operands[1].type)
    if not operand or not update or len(operand) != len(update) or len(op.operands) != len(operand) + 2:
        return ()
    counts = [axes_size(dim.axes, mesh) for dim in sharding.dim_shardings]
    dims = [dim for dim, count in enumerate(counts) if count > 1 and update[dim] != operand[dim]]
    parts = (-(-size // count) for size, count in zip(operand, counts, strict=True))
    is_local = [
        _is_in_one_part(start, size, part) for start, size, part in zip(op.operands[2:], update, parts, strict=True)
    ]
    return () if all(is_local[dim] for dim in dims) else dims


def _is_in_one_part(start: Value, size: int, part: int) -> bool:
    """Return whether a change of some elements from a place on is known to be in one shard."""
    if size == 1:
        return True
    producer = start.defining_op
    elements = None if producer is None or producer.operands else producer.attributes.get("value")
    if not isinstance(elements, DenseElements) or len(elements.values) != 1:
        return False
    first = int(elements.values[0])
    return first // part == (first + size - 1) // part
