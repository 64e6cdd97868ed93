"""Local forms of sorts and of the largest elements."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import evolve

from shardy_dialects.stablehlo.attributes import integer_of
from shardy_dialects.stablehlo.gather_scatter import GATHER
from shardy_dialects.stablehlo.local.candidates import choose_among_all
from shardy_dialects.stablehlo.local.windows import Cut
from shardy_dialects.stablehlo.local.writer import Writer, element_type_of, resized
from shardy_py.ir.graph.attributes import RawAttribute
from shardy_py.ir.graph.program import Op, Value
from shardy_py.ir.graph.types import TensorType, static_shape
from shardy_py.ir.interfaces.local import Combined, Shard, no_local_form
from shardy_py.sharding.combiner import Combiner


def localize_sort(op: Op, shard: Shard) -> Sequence[Value]:
    """Return the sort of the shards.

    Raises:
        CannotLocalize: the sorted dimension is sharded, as the rule of the reference allows for negative ones.
    """
    dim = integer_of(op, "dimension", -1) % len(static_shape(op.operands[0].type) or (1,))
    if any(dim in shard.sharded_dims(sharding) for sharding in (*shard.operand_shardings, *shard.result_shardings)):
        raise no_local_form("the sorted dimension is sharded")
    shard.check_kinds()
    return shard.copy(dimension=dim)


def localize_top_k(op: Op, shard: Shard) -> Sequence[Value]:
    """Return the largest elements of the last dimension, and their places in the whole dimension.

    Among equal elements the first one counts. The parts are joined in their order, so that this holds for all of them.
    """
    sharding, dim = shard.operand_shardings[0], len(op.operands[0].shape) - 1
    if sharding is None or dim not in shard.sharded_dims(sharding):
        return shard.copy()
    cut, count, part = Cut(shard, sharding, dim), op.results[0].shape[dim], shard.operands[0].shape[dim]
    if op.attributes.get("largest", True) is False:
        raise no_local_form("it takes the smallest elements")
    if shard.is_resolved or 2 * count > part:
        raise no_local_form("the largest elements of the parts are no fewer than all elements")
    lowest = shard.ops.scalar(shard.emit, element_type_of(shard.operands[0]), Combiner.MAX)
    if lowest is None:
        raise no_local_form("the element type has no smallest number")
    writer = Writer(shard.emit, shard.ops)
    best = evolve(shard, operands=[shard.masked(0, [dim], lowest)]).copy()
    values, places = best[0], _in_whole(writer, best[1], cut, part)

    def choose(candidates: Sequence[Value]) -> Sequence[Value]:
        joined = [_side_by_side(shard, value) for value in candidates]
        types = [TensorType((joined[0].shape[0], count), element_type_of(value)) for value in joined]
        largest, chosen = shard.emit.op_like(op, joined[:1], types).results
        return [largest, _gather_rows(writer, joined[1], chosen)]

    return Combined(choose_among_all(shard, [values, places], dim, cut.groups, choose))


def _side_by_side(shard: Shard, value: Value) -> Value:
    """Return the candidates of a row of all devices in the order of the devices."""
    devices, rows, count = value.shape
    moved = shard.ops.transpose(shard.emit, value, (1, 0, 2))
    return shard.ops.reshape(shard.emit, moved, (rows, devices * count))


def _in_whole(writer: Writer, places: Value, cut: Cut, part: int) -> Value:
    """Return places in the whole dimension for those in the part of the device."""
    table = cut.by_device([position * part for position in range(cut.parts)])
    offset = writer.convert(writer.ops.offset(writer.emit, table), element_type_of(places))
    return writer.binary("add", places, writer.spread(offset, resized(places, {})))


def _gather_rows(writer: Writer, values: Value, places: Value) -> Value:
    """Return the elements of the last dimension at some places, row by row."""
    dim = len(values.shape) - 1
    rows = list(range(dim))
    text = (
        f"#stablehlo.gather<collapsed_slice_dims = [{dim}], operand_batching_dims = {rows},"
        f" start_indices_batching_dims = {rows}, start_index_map = [{dim}], index_vector_dim = {dim + 1}>"
    )
    attributes = {"dimension_numbers": RawAttribute(text), "slice_sizes": (1,) * (dim + 1)}
    return writer.emit.op(GATHER, [values, places], [places.type], attributes).result
