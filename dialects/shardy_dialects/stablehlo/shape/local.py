"""Local forms of broadcasts, reshapes and reversals, and of ops on the size of a dimension."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from shardy_dialects.stablehlo.local.literals import array
from shardy_dialects.stablehlo.local.new_ops import CONSTANT
from shardy_dialects.stablehlo.local.windows import WindowFetcher, cut_dims, cut_of
from shardy_dialects.stablehlo.local.writer import Writer, element_type_of
from shardy_py.ir.graph.attributes import RawAttribute
from shardy_py.ir.graph.program import Op, Value
from shardy_py.ir.graph.types import static_shape
from shardy_py.ir.interfaces.local import Shard, no_local_form
from shardy_py.sharding.unknown_size import is_derived


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
    if is_derived(op.operands[0].shape[dim]):
        writer, part = Writer(shard.emit, shard.ops), shard.copy()[0]
        parts = writer.integer(shard.parts(shard.operand_shardings[0], dim), part)
        return [writer.binary("multiply", part, parts)]
    size = shard.ops.scalar(shard.emit, "i32", op.operands[0].shape[dim])
    if size is None or size.type != type_:
        raise no_local_form(f"the size of a dimension is {type_}")
    return [size]


def localize_dynamic_broadcast(op: Op, shard: Shard) -> Sequence[Value]:
    """Return a broadcast to the shape that the result has on the device."""
    if any(map(is_derived, shard.result_shape())):
        return _emit_dynamic(op, shard)
    return _emit_static(op, shard, "stablehlo.broadcast_in_dim", op.attributes["broadcast_dimensions"])


def localize_dynamic_reshape(op: Op, shard: Shard) -> Sequence[Value]:
    """Return a reshape to the shape that the result has on the device."""
    if any(map(is_derived, shard.result_shape())):
        return _emit_dynamic(op, shard)
    if prod(shard.operands[0].shape) != prod(shard.result_shape()):
        raise no_local_form("the operand and the result are cut into different numbers of elements")
    return _emit_static(op, shard, "stablehlo.reshape", None)


def localize_broadcast(op: Op, shard: Shard) -> Sequence[Value]:
    """Return a broadcast to the shape that the result has on the device; its attribute holds the whole sizes."""
    rank, result_rank = len(op.operands[0].shape), len(op.results[0].shape)
    return _emit_static(op, shard, "stablehlo.broadcast_in_dim", tuple(range(result_rank - rank, result_rank)))


def _emit_dynamic(op: Op, shard: Shard) -> Sequence[Value]:
    """Return the op with the sizes that the result has on the device, of which nothing but their ratios is known."""
    shard.check_kinds()
    operand, shape = shard.operands
    sizes = shape_on_device(shard, shape)
    return [shard.emit.op_like(op, [operand, sizes], [shard.result_type()]).result]


def localize_dynamic_iota(op: Op, shard: Shard) -> Sequence[Value]:
    """Return a counter from the first element of the shard on."""
    dim, sharding, type_ = int(op.attributes["iota_dimension"]), shard.result_shardings[0], shard.result_type()
    sizes = shape_on_device(shard, shard.operands[0])
    counted = shard.emit.op_like(op, [sizes], [type_]).result
    if sharding is None or shard.parts(sharding, dim) == 1:
        return [counted]
    writer, element_type = Writer(shard.emit, shard.ops), element_type_of(counted)
    size = shard.ops.reshape(shard.emit, writer.sliced(sizes, 0, dim, dim + 1), ())
    position = shard.ops.offset(shard.emit, shard.positions(sharding, dim))
    offset = writer.binary("multiply", position, writer.convert(size, element_type_of(position)))
    attributes = {"broadcast_dimensions": array(())}
    spread = shard.emit.op(
        "stablehlo.dynamic_broadcast_in_dim", [writer.convert(offset, element_type), sizes], [type_], attributes
    )
    return [writer.binary("add", counted, spread.result)]


def shape_on_device(shard: Shard, shape: Value) -> Value:
    """Return the sizes that the result of an op has on the device, from those of the whole result."""
    sharding = shard.result_shardings[0]
    parts = [shard.parts(sharding, dim) for dim in range(len(shard.result_shape()))]
    if max(parts, default=1) == 1:
        return shape
    writer = Writer(shard.emit, shard.ops)
    if any(size % count for size, count in zip(shard.op.results[0].shape, parts, strict=True)):
        shape = writer.binary("add", shape, _numbers(shard, shape, [count - 1 for count in parts]))
    return writer.binary("divide", shape, _numbers(shard, shape, parts))


def _numbers(shard: Shard, like: Value, numbers: Sequence[int]) -> Value:
    """Return numbers as a constant of the type of another value."""
    text = f"dense<[{', '.join(map(str, numbers))}]> : {like.type}"
    return shard.emit.op(CONSTANT, (), [like.type], {"value": RawAttribute(text)}).result


def _emit_static(op: Op, shard: Shard, name: str, dims: Sequence[int] | None) -> Sequence[Value]:
    shard.check_kinds()
    if static_shape(op.results[0].type) is None:
        raise no_local_form("the sizes of its result are not known")
    attributes = {} if dims is None else {"broadcast_dimensions": array(tuple(dims))}
    return [shard.emit.op(name, [shard.operands[0]], [shard.result_type()], attributes).result]


def localize_reverse(op: Op, shard: Shard) -> Sequence[Value]:
    """Return the mirrored part of another device, in reversed order."""
    (value,) = shard.operands
    for dim in sorted(set(op.attributes["dimensions"]).intersection(cut_dims(shard))):
        cut = cut_of(shard, dim)
        size, part = op.operands[0].shape[dim], shard.result_shape()[dim]
        starts = [size - (position + 1) * part for position in range(cut.parts)]
        value = WindowFetcher(cut, dim, part).fetch(value, cut.runs(0), starts)
    return [shard.emit.op_like(op, [value], [shard.result_type()]).result]
