"""Local forms of ops whose operands hold sizes of the whole tensor: the result is static, and so is the local op."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from shardy_dialects.stablehlo.local.texts import array
from shardy_py.ir.graph.program import Op, Value
from shardy_py.ir.graph.types import static_shape
from shardy_py.ir.interfaces.local import Shard, no_local_form


def localize_dynamic_broadcast(op: Op, shard: Shard) -> Sequence[Value]:
    """Return a broadcast to the shape that the result has on the device."""
    return _made_static(op, shard, "stablehlo.broadcast_in_dim", op.attributes["broadcast_dimensions"])


def localize_dynamic_reshape(op: Op, shard: Shard) -> Sequence[Value]:
    """Return a reshape to the shape that the result has on the device."""
    if prod(shard.operands[0].shape) != prod(shard.result_shape()):
        raise no_local_form("the operand and the result are cut into different numbers of elements")
    return _made_static(op, shard, "stablehlo.reshape", None)


def localize_broadcast(op: Op, shard: Shard) -> Sequence[Value]:
    """Return a broadcast to the shape that the result has on the device; its attribute holds the whole sizes."""
    rank, result_rank = len(op.operands[0].shape), len(op.results[0].shape)
    return _made_static(op, shard, "stablehlo.broadcast_in_dim", tuple(range(result_rank - rank, result_rank)))


def refuse(op: Op, shard: Shard) -> Sequence[Value]:
    """Refuse an op on shards, as its operands hold bounds of the whole tensor.

    Raises:
        CannotLocalize: always.
    """
    raise no_local_form("its operands hold bounds of the whole tensor")


def _made_static(op: Op, shard: Shard, name: str, dims: Sequence[int] | None) -> Sequence[Value]:
    shard.check_kinds()
    if static_shape(op.results[0].type) is None:
        raise no_local_form("the sizes of its result are not known")
    attributes = {} if dims is None else {"broadcast_dimensions": array(tuple(dims))}
    return [shard.emit.op(name, [shard.operands[0]], [shard.result_type()], attributes).result]


FORMS = {
    "stablehlo.broadcast": localize_broadcast,
    "stablehlo.dynamic_broadcast_in_dim": localize_dynamic_broadcast,
    "stablehlo.dynamic_reshape": localize_dynamic_reshape,
    **dict.fromkeys((f"stablehlo.{name}" for name in ("dynamic_gather", "dynamic_pad", "real_dynamic_slice")), refuse),
}
