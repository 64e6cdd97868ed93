"""Local forms of reshapes, and of ops on the size of a dimension."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from shardy_py.ir.graph.program import Op, Value
from shardy_py.ir.interfaces.local import Shard, no_local_form


def localize_reshape(op: Op, shard: Shard) -> Sequence[Value]:
    """Return the shard in its new shape: the elements of a shard stay together."""
    shard.check_kinds()
    before, after = shard.operands[0].shape, shard.result_shape()
    if prod(before) != prod(after):
        raise no_local_form("the operand and the result are cut into different numbers of elements")
    return shard.copy()


def localize_get_dimension_size(op: Op, shard: Shard) -> Sequence[Value]:
    """Return the size of a dimension of the whole tensor."""
    dim, type_ = int(op.attributes["dimension"]), op.results[0].type
    if dim not in shard.sharded_dims(shard.operand_shardings[0]):
        return shard.copy()
    size = shard.ops.scalar(shard.emit, "i32", op.operands[0].shape[dim])
    if size is None or size.type != type_:
        raise no_local_form(f"the size of a dimension is {type_}")
    return [size]


FORMS = {
    "stablehlo.get_dimension_size": localize_get_dimension_size,
    "stablehlo.reshape": localize_reshape,
}
