"""Gathers on a device and in kernels.

Along an indexed sharded dimension each device looks up what it has; the rest is zero, and the partial results are
summed. Indices clamp against the whole dimension.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from shardy_dialects.stablehlo.attributes import (
    DimensionNumbers,
    dimension_numbers_of,
    integers_of,
)
from shardy_dialects.stablehlo.definitions import shape_of
from shardy_dialects.stablehlo.elementwise.ops import SELECT
from shardy_dialects.stablehlo.local.indices import (
    IndexVectors,
    clamped,
    is_inside,
    on_device,
    place_among_zeros,
    summed,
    with_zeros_around,
)
from shardy_dialects.stablehlo.local.windows import Cut
from shardy_dialects.stablehlo.local.writer import Writer, resized
from shardy_dialects.stablehlo.slicing.body import start
from shardy_py.indexing import Expression, VariableKind
from shardy_py.indexing.expressions import variables_of
from shardy_py.ir.graph.program import Op, Value
from shardy_py.ir.graph.types import tensor
from shardy_py.ir.interfaces.local import Shard, no_local_form
from shardy_py.plugins import ElementBuilder, Scalar


def localize_gather(op: Op, shard: Shard) -> Sequence[Value]:
    """Return a gather from the part of the device."""
    numbers = dimension_numbers_of(op, "dimension_numbers")
    sizes = list(op.attributes["slice_sizes"])
    looked_up, windows = [], []
    sharding = shard.operand_shardings[0]
    for dim in shard.sharded_dims(sharding):
        if sharding is not None and sizes[dim] > 1 and _is_whole(shard, numbers, dim):
            windows.append(Cut(shard, sharding, dim))
        elif sizes[dim] == op.operands[0].shape[dim] and sizes[dim] > 1:
            sizes[dim] = shard.operands[0].shape[dim]
        elif dim in numbers.dims("operand_batching_dims"):
            continue
        elif sizes[dim] == 1 and sharding is not None:
            looked_up.append(Cut(shard, sharding, dim))
        else:
            raise no_local_form(
                f"dimension {dim} of the operand is sharded, and slices of {sizes[dim]} are taken of it"
            )
    if windows:
        return _summed_windows(op, shard, numbers, [*looked_up, *windows], sizes)
    if not looked_up:
        return _gather_on_device(op, shard, numbers, sizes)
    return [_masked_gather(op, shard, numbers, looked_up, sizes)]


def _gather_on_device(op: Op, shard: Shard, numbers: DimensionNumbers, sizes: Sequence[int]) -> Sequence[Value]:
    """Return a gather from an operand whose indexed dimensions are whole.

    XLA makes a slice of a gather with one index, adds its start to that of a slice before, and forgets that an index
    outside of the operand is clamped. So an index that a device has alone is clamped here.
    """
    vector_dim = numbers.number("index_vector_dim")
    indices = IndexVectors(shard.operands[1], vector_dim, numbers.dims("start_index_map"))
    global_indices = IndexVectors(op.operands[1], vector_dim, indices.dims)
    if prod(indices.shape) > 1 or prod(global_indices.shape) == 1:
        return shard.copy(slice_sizes=tuple(sizes))
    writer = Writer(shard.emit, shard.ops)
    largest = [op.operands[0].shape[dim] - op.attributes["slice_sizes"][dim] for dim in indices.dims]
    components = {
        number: clamped(writer, indices.component(writer, number), size) for number, size in enumerate(largest)
    }
    operands = [shard.operands[0], indices.with_components(writer, components).value]
    return shard.emit.op_like(op, operands, [shard.result_type()], {"slice_sizes": tuple(sizes)}).results


def _is_whole(shard: Shard, numbers: DimensionNumbers, dim: int) -> bool:
    """Return whether the dimension of the result that a sharded dimension of the operand becomes is whole."""
    dropped = (*numbers.dims("collapsed_slice_dims"), *numbers.dims("operand_batching_dims"))
    window_dims = [number for number in range(len(shard.op.operands[0].shape)) if number not in dropped]
    return (
        dim in window_dims
        and shard.parts(shard.result_shardings[0], numbers.dims("offset_dims")[window_dims.index(dim)]) == 1
    )


def _summed_windows(
    op: Op, shard: Shard, numbers: DimensionNumbers, cuts: Sequence[Cut], sizes: Sequence[int]
) -> Sequence[Value]:
    """Return a gather of several elements along sharded dimensions, which is the sum of what the devices have."""
    writer = Writer(shard.emit, shard.ops)
    indices = IndexVectors(shard.operands[1], numbers.number("index_vector_dim"), numbers.dims("start_index_map"))
    value, places = shard.operands[0], {}
    for cut in cuts:
        if cut.dim not in indices.dims:
            raise no_local_form(f"dimension {cut.dim} of the operand is sharded, and no index moves along it")
        number = indices.dims.index(cut.dim)
        value = with_zeros_around(shard, writer, value, cut.dim, sizes[cut.dim])
        places[number] = place_among_zeros(writer, indices.component(writer, number), cut, sizes[cut.dim])
    operands = [value, indices.with_components(writer, places).value]
    types = [shard.result_type()]
    gathered = shard.emit.op_like(op, operands, types, {"slice_sizes": tuple(sizes)}).result
    return summed(shard, gathered, cuts)


def _masked_gather(op: Op, shard: Shard, numbers: DimensionNumbers, cuts: Sequence[Cut], sizes: Sequence[int]) -> Value:
    """Return the gathered elements that the device has, and zeros elsewhere.

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
        is_in_part = is_inside(writer, place, part)
        inside = is_in_part if inside is None else writer.binary("and", inside, is_in_part)
    local = indices.with_components(writer, places).value if places else indices.value
    gathered = shard.emit.op_like(
        op, [shard.operands[0], local], [shard.result_type()], {"slice_sizes": tuple(sizes)}
    ).result
    if inside is None:
        return gathered
    batch = [dim for dim in range(len(gathered.shape)) if dim not in numbers.dims("offset_dims")]
    mask = writer.spread(inside, tensor(*gathered.shape, dtype="i1"), batch)
    rest = writer.spread(writer.zero_like(gathered), resized(gathered, {}))
    return shard.emit.op(SELECT, [mask, gathered, rest], [gathered.type]).result


def localize_torch_index_select(op: Op, shard: Shard) -> Sequence[Value]:
    """Return the rows that the device has, and zeros for the others."""
    dim, batch = int(op.attributes["dim"]), int(op.attributes["batch_dims"])
    sharding = shard.operand_shardings[0]
    if sharding is None or dim not in shard.sharded_dims(sharding):
        return shard.copy()
    writer, part = Writer(shard.emit, shard.ops), shard.operands[0].shape[dim]
    index = clamped(writer, writer.convert(shard.operands[1], "i64"), op.operands[0].shape[dim] - 1)
    place = on_device(writer, index, Cut(shard, sharding, dim), part)
    rows = clamped(writer, place, part - 1)
    selected = shard.emit.op_like(op, [shard.operands[0], rows], [shard.result_type()]).result
    dims = [number if number < batch else dim + number - batch for number in range(len(place.shape))]
    mask = writer.spread(is_inside(writer, place, part), tensor(*selected.shape, dtype="i1"), dims)
    rest = writer.spread(writer.zero_like(selected), resized(selected, {}))
    return [shard.emit.op(SELECT, [mask, selected, rest], [selected.type]).result]


def gather_body(b: ElementBuilder, op: Op) -> Scalar:
    """Read a slice at a start that the indices give."""
    numbers = dimension_numbers_of(op, "dimension_numbers")
    operand, indices = op.operands
    shape, sizes = shape_of(operand), integers_of(op, "slice_sizes")
    of_operand, of_indices = b.maps
    inner = [_inside_slice(b, result) for result in of_operand.results]
    columns = {dimension: column for column, dimension in enumerate(numbers.dims("start_index_map"))}
    starts: dict[int, Scalar] = {}
    for dimension, column in columns.items():
        symbols = [b.constant(column, "index")] if of_indices.ranges else []
        component = b.operand(1, b.apply(of_indices, b.indices, symbols))
        starts[dimension] = start(b, indices, component, shape[dimension] - sizes[dimension])
    return b.operand(0, [_moved(b, index, starts.get(number)) for number, index in enumerate(inner)])


def _inside_slice(b: ElementBuilder, expression: Expression) -> Scalar | None:
    """Return the index inside of the slice along a dimension; None where the slice has one element."""
    dims = [variable.number for variable in variables_of(expression) if variable.kind is VariableKind.DIM]
    return b.indices[dims[0]] if dims else None


def _moved(b: ElementBuilder, index: Scalar | None, start: Scalar | None) -> Scalar:
    if index is None:
        return b.constant(0, "index") if start is None else start
    return index if start is None else b.op("arith.addi", index, start)
