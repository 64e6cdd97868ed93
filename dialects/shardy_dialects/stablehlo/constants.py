"""Constants and counters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from shardy_dialects.stablehlo.bodies import element_type, is_complex, is_float, kernel_type
from shardy_dialects.stablehlo.costs import MovingCost
from shardy_dialects.stablehlo.definitions import Definitions, LazyFacets
from shardy_py.ir.graph.program import Op, Value
from shardy_py.ir.graph.types import TensorType, tensor
from shardy_py.ir.interfaces.local import Shard, local_constant
from shardy_py.plugins import AsSdyConstant, ConstantFoldable, ConstantLike, Pure, UnitedByMlir
from shardy_py.sharding.rule import FactorKind, OpShardingRule
from shardy_py.sharding.rule_builder import OpShardingRuleBuilder, tensor_shape

if TYPE_CHECKING:
    from shardy_py.plugins import ElementBuilder, Scalar

IOTA, CLIENT_CONSTANT = "stablehlo.iota", "chlo.constant"


def register(definitions: Definitions) -> None:
    """Define constants and counters."""
    definitions.define(
        "stablehlo.constant",
        traits=(Pure, ConstantLike, AsSdyConstant, UnitedByMlir),
        body=constant_body,
        local=local_constant,
    )
    definitions.define(CLIENT_CONSTANT, traits=(Pure, ConstantLike, UnitedByMlir), body=constant_body)
    # Without operands, it is always copied together with its users.
    definitions.define(
        IOTA,
        traits=(Pure, ConstantFoldable),
        body=iota_body,
        local=localize_iota,
        cost=MovingCost(),
    )
    local = LazyFacets("shardy_dialects.stablehlo.shape").local("localize_dynamic_iota")
    definitions.define("stablehlo.dynamic_iota", dynamic_iota_rule, extended=True, local=local)


def dynamic_iota_rule(op: Op) -> OpShardingRule:
    """Let the result be sharded in any way; its sizes are on every device."""
    builder = OpShardingRuleBuilder.for_op(op)
    for dim, size in enumerate(tensor_shape(op.results[0])):
        builder.add_factor([None], [dim], size)
    rank = tensor_shape(op.operands[0])[0]
    return builder.add_factor([0], [None], rank, kind=FactorKind.NEED_REPLICATION).build()


def iota_body(b: ElementBuilder, op: Op) -> Scalar:
    """Give the index along a dimension."""
    target = op.results[0]
    index = b.indices[int(op.attributes["iota_dimension"])]
    dtype = kernel_type(element_type(target))
    if is_complex(target):
        part = dtype[len("complex<") : -1]
        real = b.op("arith.sitofp", b.op("arith.index_castui", index, dtype="i64"), dtype=part)
        return b.op("complex.create", real, b.constant(0, part), dtype=dtype)
    if is_float(target):
        return b.op("arith.sitofp", b.op("arith.index_castui", index, dtype="i64"), dtype=dtype)
    return b.op("arith.index_castui", index, dtype=dtype)


def constant_body(b: ElementBuilder, op: Op) -> Scalar:
    """Give an element of the constant."""
    return b.literal(op)


_INTEGERS = ("i", "ui", "si")


def localize_iota(op: Op, shard: Shard) -> Sequence[Value]:
    """Return a counter from the first element of the shard on; numbers are rounded once, after the offset is added."""
    type_, sharding = shard.result_type(), shard.result_shardings[0]
    dim = int(op.attributes["iota_dimension"])
    if sharding is None or shard.parts(sharding, dim) == 1 or not isinstance(type_, TensorType):
        return shard.copy(iota_dimension=dim)
    size = shard.result_shape()[dim]
    from shardy_dialects.stablehlo.local.writer import Writer

    writer = Writer(shard.emit, shard.ops)
    # Integers wrap around, so that sums of wrapped ones are right, too.
    element_type = type_.element_type if type_.element_type.startswith(_INTEGERS) else "i64"
    counted = tensor(*shard.result_shape(), dtype=element_type)
    local = shard.emit.op_like(op, (), [counted], {"iota_dimension": dim}).result
    offset = shard.ops.offset(shard.emit, [position * size for position in shard.positions(sharding, dim)])
    spread = writer.spread(writer.convert(offset, element_type), counted)
    return [writer.convert(writer.binary("add", local, spread), type_.element_type)]
