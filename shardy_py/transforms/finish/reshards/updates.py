"""Slices and updates of parts of divided dimensions, which XLA's partitioner makes on gathered tensors.

As in spmd_partitioner.cc::HandleDynamicSlice and ::HandleDynamicUpdateSlice: one place, and a constant part of one
shard, are changed where they are.
"""

from __future__ import annotations

from collections.abc import Sequence

from shardy_py.ir.graph.attributes import DenseElements
from shardy_py.ir.graph.op_names import RESHARD
from shardy_py.ir.graph.program import Op, Value
from shardy_py.ir.graph.types import static_shape
from shardy_py.sharding.axes import axes_size
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.tensor import TensorSharding
from shardy_py.transforms.finish.reshards.insertion import InsertionPoint, Resharder


def divides_slices(resharder: Resharder, op: Op) -> bool:
    """Return whether the result of a slice is divided along a dimension of which it is a part."""
    sharding = resharder.sharding(op.results[0])
    whole, part = static_shape(op.operands[0].type), static_shape(op.results[0].type)
    if sharding is None or whole is None or part is None or len(whole) != len(part):
        return False
    mesh = resharder.mesh(sharding)
    dims = zip(sharding.dim_shardings, whole, part, strict=True)
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
    made = target.defining_op
    if made is not None and made.name == RESHARD and target.has_one_use:
        # What the op was about to get is brought to what it needs at once.
        target = made.operands[0]
    op.set_operand(0, resharder.reshard(target, sharding.with_whole_dims(dims), InsertionPoint.before(op)))
    moved = resharder.reshard(result, wanted, InsertionPoint.after(op))
    result.replace_all_uses_with(moved, except_op=moved.owning_op)
    resharder.set_result_sharding(result, wanted.with_whole_dims(dims))
    return True


def _changed_dims(op: Op, sharding: TensorSharding, mesh: Mesh) -> Sequence[int]:
    """Return the divided dimensions of which a part is changed, if more than one shard of one of them may be."""
    whole, update = static_shape(op.operands[0].type), static_shape(op.operands[1].type)
    if not whole or not update or len(whole) != len(update) or len(op.operands) != len(whole) + 2:
        return ()
    counts = [axes_size(dim.axes, mesh) for dim in sharding.dim_shardings]
    dims = [dim for dim, count in enumerate(counts) if count > 1 and update[dim] != whole[dim]]
    parts = (-(-size // count) for size, count in zip(whole, counts, strict=True))
    is_local = [
        _is_in_one_part(start, size, part) for start, size, part in zip(op.operands[2:], update, parts, strict=True)
    ]
    return () if all(is_local[dim] for dim in dims) else dims


def _is_in_one_part(start: Value, size: int, part: int) -> bool:
    """Return whether a change of some elements from a place on is known to be in one shard."""
    if size == 1:
        return True
    made = start.defining_op
    elements = None if made is None or made.operands else made.attributes.get("value")
    if not isinstance(elements, DenseElements) or len(elements.values) != 1:
        return False
    first = int(elements.values[0])
    return first // part == (first + size - 1) // part
