"""The local form of a gather: along an indexed sharded dimension each device looks up what it has, the rest is zero.

The partial results are then summed. Indices clamp against the whole dimension.
"""

from __future__ import annotations

from collections.abc import Sequence

from shardy_dialects.stablehlo.attributes import DimensionNumbers, parse_dimension_numbers
from shardy_dialects.stablehlo.local.indices import IndexVectors, clamped, is_inside, on_device
from shardy_dialects.stablehlo.local.windows import Cut
from shardy_dialects.stablehlo.local.writer import Writer, resized
from shardy_py.ir.graph import Op, Value
from shardy_py.ir.local import Shard, no_local_form
from shardy_py.ir.types import tensor


def localize_gather(op: Op, shard: Shard) -> Sequence[Value]:
    """Return a gather from the part of the device."""
    numbers = parse_dimension_numbers(str(op.attributes["dimension_numbers"]))
    sizes = list(op.attributes["slice_sizes"])
    looked_up = []
    sharding = shard.operand_shardings[0]
    for dim in shard.sharded_dims(sharding):
        if sizes[dim] == op.operands[0].shape[dim] and sizes[dim] > 1:
            sizes[dim] = shard.operands[0].shape[dim]
        elif dim in numbers.dims("operand_batching_dims"):
            continue
        elif sizes[dim] == 1 and sharding is not None:
            looked_up.append(Cut(shard, sharding, dim))
        else:
            raise no_local_form(
                f"dimension {dim} of the operand is sharded, and slices of {sizes[dim]} are taken of it"
            )
    if not looked_up:
        return shard.copy(slice_sizes=tuple(sizes))
    return [_masked_gather(op, shard, numbers, looked_up, sizes)]


def _masked_gather(op: Op, shard: Shard, numbers: DimensionNumbers, cuts: Sequence[Cut], sizes: Sequence[int]) -> Value:
    """Return what the device has of a gather, and zeros elsewhere.

    Args:
        op: The gather.
        shard: Its operands on the device.
        numbers: Its dimension numbers.
        cuts: The indexed dimensions that are sharded.
        sizes: The sizes of the slices on the device.
    """
    writer = Writer(shard.emit, shard.ops)
    indices = IndexVectors(shard.operands[1], numbers.number("index_vector_dim"), numbers.dims("start_index_map"))
    places: dict[int, Value] = {}
    inside: Value | None = None
    for cut in cuts:
        part = shard.operands[0].shape[cut.dim]
        if cut.dim in indices.dims:
            number = indices.dims.index(cut.dim)
            index = clamped(writer, indices.component(writer, number), op.operands[0].shape[cut.dim] - 1)
            places[number] = place = on_device(writer, index, cut, part)
        else:
            zero = writer.spread(writer.scalar("0", "i64"), tensor(*indices.shape, dtype="i64"))
            place = on_device(writer, zero, cut, part)
        own = is_inside(writer, place, part)
        inside = own if inside is None else writer.binary("and", inside, own)
    local = indices.with_components(writer, places).value if places else indices.value
    found = shard.emit.op_like(
        op, [shard.operands[0], local], [shard.result_type()], {"slice_sizes": tuple(sizes)}
    ).result
    if inside is None:
        return found
    batch = [dim for dim in range(len(found.shape)) if dim not in numbers.dims("offset_dims")]
    mask = writer.spread(inside, tensor(*found.shape, dtype="i1"), batch)
    rest = writer.spread(writer.zero_like(found), resized(found, {}))
    return shard.emit.op("stablehlo.select", [mask, found, rest], [found.type]).result


FORMS = {"stablehlo.gather": localize_gather}
