"""The local form of a scatter: each device takes the updates that fall into its part, others drop out.

Where updates are sharded, the operand counts on one of the devices whose results are combined.
"""

from __future__ import annotations

from collections.abc import Sequence

from shardy_dialects.stablehlo.attributes import DimensionNumbers, dimension_numbers_of
from shardy_dialects.stablehlo.control_flow import BARRIER
from shardy_dialects.stablehlo.elementwise.ops import SELECT
from shardy_dialects.stablehlo.local.indices import IndexVectors, on_device
from shardy_dialects.stablehlo.local.literals import neutral_literal
from shardy_dialects.stablehlo.local.split_windows import SplitWindows, window_dims
from shardy_dialects.stablehlo.local.windows import Cut
from shardy_dialects.stablehlo.local.writer import Writer, element_type_of, resized
from shardy_dialects.stablehlo.regions import region_combiner
from shardy_py.ir.graph.program import Op, Value
from shardy_py.ir.graph.types import tensor
from shardy_py.ir.interfaces.local import Shard, no_local_form
from shardy_py.sharding.tensor import TensorSharding


def localize_scatter(op: Op, shard: Shard) -> Sequence[Value]:
    """Return a scatter of the updates of the device into its part."""
    numbers = dimension_numbers_of(op, "scatter_dimension_numbers")
    count = len(op.results)
    writer = Writer(shard.emit, shard.ops)
    operands = list(shard.operands)
    operands[count] = _local_indices(op, shard, numbers, writer)
    if operands[count] is not shard.operands[count] and _is_single(operands[count], numbers):
        operands[:count] = [_apart(writer, value) for value in operands[:count]]
    is_first = _first_devices(shard, numbers)
    if not all(is_first):
        operands[:count] = [_once(op, shard, writer, number, is_first) for number in range(count)]
    changes = {}
    for cut in _window_cuts(op, shard, numbers):
        split = SplitWindows(writer, numbers, operands[count], operands[count + 1 :]).along(cut)
        numbers, operands = split.numbers, [*operands[:count], split.indices, *split.updates]
        changes = {"scatter_dimension_numbers": split.attribute, "unique_indices": False, "indices_are_sorted": False}
    types = [shard.result_type(number) for number in range(count)]
    return list(shard.emit.op_like(op, operands, types, changes, regions=shard.regions()).results)


def _window_cuts(op: Op, shard: Shard, numbers: DimensionNumbers) -> list[Cut]:
    """Return the sharded dimensions of the operands along which windows of several elements move."""
    count = len(op.results)
    cuts = (Cut(shard, item, dim) for item in shard.operand_shardings[:1] if item for dim in shard.sharded_dims(item))
    mapped, of_update = numbers.dims("scatter_dims_to_operand_dims"), window_dims(op, numbers)
    shape, updates = op.operands[0].shape, op.operands[count + 1].shape
    sizes = {dim: updates[number] for dim, number in of_update.items()}
    return [cut for cut in cuts if cut.dim in mapped and 1 < sizes.get(cut.dim, 1) < shape[cut.dim]]


def _local_indices(op: Op, shard: Shard, numbers: DimensionNumbers, writer: Writer) -> Value:
    """Return the indices into the part of the device; those of updates without an element of it lie outside."""
    count = len(op.results)
    mapped = numbers.dims("scatter_dims_to_operand_dims")
    indices = IndexVectors(shard.operands[count], numbers.number("index_vector_dim"), mapped)
    components = {
        mapped.index(cut.dim): on_device(
            writer, indices.component(writer, mapped.index(cut.dim)), cut, shard.operands[0].shape[cut.dim]
        )
        for cut in _indexed_cuts(op, shard, numbers)
    }
    for dim, real in _padded_dims(op, shard, numbers):
        if not mapped:
            raise no_local_form(f"dimension {dim} of the updates has padding, and nothing is indexed")
        index = components.get(0, indices.component(writer, 0))
        outside = writer.spread(writer.integer(-1, index), resized(index, {}))
        mask = writer.mask(index.shape[dim], [0] * len(real), real)
        components[0] = writer.select(mask, dim, index, outside)
    return indices.with_components(writer, components).value if components else indices.value


def _is_single(indices: Value, numbers: DimensionNumbers) -> bool:
    """Return whether there is one index vector."""
    vector = numbers.number("index_vector_dim")
    return all(size == 1 for dim, size in enumerate(indices.shape) if dim != vector)


def _apart(writer: Writer, value: Value) -> Value:
    """Return a value that is not computed together with what uses it.

    XLA updates a slice at one index by reading what it replaces. Where the operand is a slice, too, it adds up where
    both begin, and forgets that an index outside of the operand is clamped.
    """
    return writer.emit.op(BARRIER, [value], [value.type]).result


def _indexed_cuts(op: Op, shard: Shard, numbers: DimensionNumbers) -> list[Cut]:
    """Return the sharded dimensions of the operands along which single elements are indexed.

    Raises:
        CannotLocalize: windows move along a sharded dimension and nothing says where to.
    """
    count = len(op.results)
    batching, inserted = numbers.dims("input_batching_dims"), numbers.dims("inserted_window_dims")
    mapped = numbers.dims("scatter_dims_to_operand_dims")
    shape, update_shape = op.operands[0].shape, op.operands[count + 1].shape
    of_update = window_dims(op, numbers)
    cuts: dict[int, Cut] = {}
    for sharding in shard.operand_shardings[:count]:
        for dim in shard.sharded_dims(sharding):
            if dim in batching or (dim in of_update and update_shape[of_update[dim]] == shape[dim]):
                continue
            if (dim not in inserted and dim not in of_update) or dim not in mapped or sharding is None:
                raise no_local_form(f"dimension {dim} of the operand is sharded, and windows move along it")
            if shard.is_resolved and dim not in inserted:
                raise no_local_form(f"dimension {dim} of the operand is sharded, and windows move along it")
            if dim in of_update and update_shape[of_update[dim]] > 1:
                continue
            cuts.setdefault(dim, Cut(shard, sharding, dim))
    return list(cuts.values())


def _scattered_dims(shard: Shard, numbers: DimensionNumbers) -> list[tuple[TensorSharding, int, int]]:
    """Return the sharded dimensions of the updates along which they are combined.

    Each comes with the sharding of the updates and with its number among the dimensions that are no window.
    """
    count = len(shard.op.results)
    sharding = shard.operand_shardings[count + 1]
    window, batching = numbers.dims("update_window_dims"), numbers.dims("scatter_indices_batching_dims")
    vector = numbers.number("index_vector_dim")
    if sharding is None:
        return []
    others = [dim for dim in range(sharding.rank) if dim not in window]
    return [
        (sharding, dim, position)
        for position, dim in enumerate(others)
        if shard.parts(sharding, dim) > 1 and (position if position < vector else position + 1) not in batching
    ]


def _padded_dims(op: Op, shard: Shard, numbers: DimensionNumbers) -> list[tuple[int, list[int]]]:
    """Return the dimensions of the index vectors with padding, and the number of real ones by device."""
    padded = []
    for sharding, dim, position in _scattered_dims(shard, numbers):
        cut, size = Cut(shard, sharding, dim), op.operands[len(op.results) + 1].shape[dim]
        if size % cut.parts:
            part = -(-size // cut.parts)
            real = [min(max(size - place * part, 0), part) for place in range(cut.parts)]
            padded.append((position, cut.by_device(real)))
    return padded


def _first_devices(shard: Shard, numbers: DimensionNumbers) -> list[int]:
    """Return 1 for each device that has the first part of the updates along all combined dimensions."""
    columns = [shard.positions(sharding, dim) for sharding, dim, _ in _scattered_dims(shard, numbers)]
    return [int(not any(positions)) for positions in zip(*columns, strict=True)] or [1]


def _once(op: Op, shard: Shard, writer: Writer, number: int, is_first: Sequence[int]) -> Value:
    """Return an operand on the first devices, and the neutral value on the others.

    Raises:
        CannotLocalize: the combining function has no neutral value.
    """
    value, combiner = shard.operands[number], region_combiner(op)
    if combiner is None:
        raise no_local_form("updates are sharded, and nothing is known to combine them")
    if combiner.is_idempotent:
        return value
    text = neutral_literal(combiner, element_type_of(value))
    if text is None:
        raise no_local_form(f"no {element_type_of(value)} is neutral for {combiner.value}")
    rest = writer.spread(writer.scalar(text, element_type_of(value)), resized(value, {}))
    flag = writer.convert(shard.ops.offset(shard.emit, is_first), "i1")
    mask = writer.spread(flag, tensor(*value.shape, dtype="i1"))
    return shard.emit.op(SELECT, [mask, value, rest], [value.type]).result
