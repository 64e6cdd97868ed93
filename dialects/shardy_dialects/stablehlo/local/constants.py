"""Local forms of constants and counters."""

from __future__ import annotations

from collections.abc import Sequence

from shardy_dialects.stablehlo.local.texts import array
from shardy_py.ir.graph import Op, Value
from shardy_py.ir.local import Shard, local_constant
from shardy_py.ir.types import TensorType, tensor


def localize_iota(op: Op, shard: Shard) -> Sequence[Value]:
    """Return a counter from the first element of the shard on."""
    type_, sharding = shard.result_type(), shard.result_shardings[0]
    dim = int(op.attributes["iota_dimension"])
    (local,) = shard.copy(iota_dimension=dim)
    if sharding is None or shard.parts(sharding, dim) == 1 or not isinstance(type_, TensorType):
        return [local]
    size = shard.result_shape()[dim]
    offset = shard.ops.offset(shard.emit, [position * size for position in shard.positions(sharding, dim)])
    if type_.element_type != "i64":
        offset = shard.emit.op("stablehlo.convert", [offset], [tensor(dtype=type_.element_type)]).result
    dims = {"broadcast_dimensions": array(())}
    spread = shard.emit.op("stablehlo.broadcast_in_dim", [offset], [type_], dims).result
    return [shard.emit.op("stablehlo.add", [local, spread], [type_]).result]


FORMS = {"stablehlo.constant": local_constant, "stablehlo.iota": localize_iota}
