"""Local forms of constants and counters."""

from __future__ import annotations

from collections.abc import Sequence

from shardy_dialects.stablehlo.local.writer import Writer
from shardy_py.ir.graph.program import Op, Value
from shardy_py.ir.graph.types import TensorType, tensor
from shardy_py.ir.interfaces.local import Shard

_INTEGERS = ("i", "ui", "si")


def localize_iota(op: Op, shard: Shard) -> Sequence[Value]:
    """Return a counter from the first element of the shard on; numbers are rounded once, after the offset is added."""
    type_, sharding = shard.result_type(), shard.result_shardings[0]
    dim = int(op.attributes["iota_dimension"])
    if sharding is None or shard.parts(sharding, dim) == 1 or not isinstance(type_, TensorType):
        return shard.copy(iota_dimension=dim)
    size = shard.result_shape()[dim]
    writer = Writer(shard.emit, shard.ops)
    # Integers wrap around, so that sums of wrapped ones are right, too.
    element_type = type_.element_type if type_.element_type.startswith(_INTEGERS) else "i64"
    counted = tensor(*shard.result_shape(), dtype=element_type)
    local = shard.emit.op_like(op, (), [counted], {"iota_dimension": dim}).result
    offset = shard.ops.offset(shard.emit, [position * size for position in shard.positions(sharding, dim)])
    spread = writer.spread(writer.convert(offset, element_type), counted)
    return [writer.convert(writer.binary("add", local, spread), type_.element_type)]


FORMS = {"stablehlo.iota": localize_iota}
