"""Updates and look-ups at indices into a sharded dimension: each device has the elements that fall into its part.

An update writes the other elements into a row behind the part, which is cut off again. A look-up is the sum of what
the devices have, where that is less than the whole operand.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from shardy_dialects.aten.arguments import (
    attribute,
    input_sized,
    normal,
    operand_names,
    operand_number,
    operand_shape,
    result_shape,
)
from shardy_dialects.aten.local_ops import aten
from shardy_py.ir.graph.program import Op, Value
from shardy_py.ir.graph.types import TensorType
from shardy_py.ir.interfaces.local import Combined, Shard, local_by_types, no_local_form
from shardy_py.ir.interfaces.named_collectives import type_like
from shardy_py.sharding.axes import AxisRef
from shardy_py.sharding.combiner import Combiner
from shardy_py.sharding.shard_positions import replica_groups
from shardy_py.sharding.tensor import TensorSharding

_INDEX = re.compile(r"indices\[(\d+)\]")
_WITHOUT_SUM = ("f8", "ui16", "ui32", "ui64", "complex<f16>")
"""The element types that PyTorch does not add."""
_INDEX_NAMES = ("index", "indices")
_FROM_END = ("index_fill", "take_along_dim")
"""The ops with an index by name that may count from the end; the other ones refuse that."""


def indexed_dims(op: Op) -> dict[int, int]:
    """Return dimension to operand number, for the dimensions that are indexed by tensors."""
    operand_of_dim = {}
    for number, name in enumerate(operand_names(op)):
        match = _INDEX.fullmatch(name)
        if match:
            operand_of_dim[int(match.group(1))] = number
    if operand_of_dim or attribute(op, "dim") is None:
        return operand_of_dim
    numbers = [number for number in (operand_number(op, name) for name in _INDEX_NAMES) if number is not None]
    return {normal(attribute(op, "dim"), len(operand_shape(op, 0))): number for number in numbers[:1]}


def localize_update(op: Op, shard: Shard) -> Sequence[Value]:
    """Return the part of the device with the elements that are put there."""
    dims = _indexed_parts(op, shard)
    if not dims:
        return local_by_types(op, shard)
    shard.check_kinds()
    operands, emit = list(shard.operands), shard.emit
    shape = list(operands[0].shape)
    for dim, number in dims.items():
        part = shape[dim]
        place = _clamped(shard, _place(op, shard, dim, number), -1, part)
        # -1 becomes the row behind the part, too.
        operands[number] = aten(emit, "remainder.Scalar", {"self": place}, place.shape, other=part + 1)
        shape[dim] = part + 1
    operands[0] = shard.ops.resize(emit, operands[0], shape)
    updated = emit.op_like(op, operands, [type_like(operands[0], shape)]).result
    return [shard.ops.resize(emit, updated, shard.result_shape())]


def localize_look_up(op: Op, shard: Shard) -> Sequence[Value]:
    """Return the elements at indices, summed over the devices that have the parts.

    Raises:
        CannotLocalize: the other operands, or the results, are sharded along the same axes, or sums are written
            elsewhere.
    """
    dims = _indexed_parts(op, shard)
    if not dims:
        return local_by_types(op, shard)
    axes = _summed_axes(shard, dims)
    emit, operands, masks = shard.emit, list(shard.operands), []
    for dim, number in dims.items():
        place = _place(op, shard, dim, number)
        operands[number] = inside = _clamped(shard, place, 0, operands[0].shape[dim] - 1)
        mask = _equal(shard, place, inside)
        masks.append(shard.ops.reshape(emit, mask, _mask_shape(op, shard, number)))
    result = emit.op_like(op, operands, [shard.result_type()]).result
    return _summed(shard, result, masks, axes)


def localize_piece(op: Op, shard: Shard) -> Sequence[Value]:
    """Return a slice or an element along a sharded dimension, summed over the devices that have parts of it.

    Raises:
        CannotLocalize: the result is sharded along the same axes, or sums are written elsewhere.
    """
    operand = operand_shape(op, 0)
    dim = normal(attribute(op, "dim", 0), len(operand))
    if dim not in shard.sharded_dims(shard.operand_shardings[0]) or operand == result_shape(op):
        return local_by_types(op, shard)
    axes = _summed_axes(shard, [dim])
    emit, value = shard.emit, shard.operands[0]
    shape, part = list(value.shape), value.shape[dim]
    shape[dim] = 1 if len(result_shape(op)) < len(operand) else result_shape(op)[dim]
    if shape[dim] == 0:
        raise no_local_form("an empty slice has no elements that a device may have")
    start, step = _start_and_step(op, operand[dim])
    place = _numbers(shard, shape[dim])
    place = aten(emit, "mul.Scalar", {"self": place}, place.shape, other=step) if step > 1 else place
    place = aten(emit, "add.Scalar", {"self": place}, place.shape, other=start)
    offset = _offset(shard, shard.operand_shardings[0], dim, part)
    place = aten(emit, "sub.Tensor", {"self": place, "other": offset}, place.shape)
    inside = _clamped(shard, place, 0, part - 1)
    mask = shard.ops.reshape(emit, _equal(shard, place, inside), _line_shape(shape, dim))
    taken = aten(emit, "index_select.default", {"self": value, "index": inside}, shape, dim=dim)
    (summed,) = _summed(shard, taken, [mask], axes)
    return Combined([summed if len(shape) == len(result_shape(op)) else _without(shard, summed, dim)])


def _summed_axes(shard: Shard, dims: Iterable[int]) -> list[AxisRef]:
    """Return the axes of sharded dimensions of the first operand, over which results are summed.

    Raises:
        CannotLocalize: the other operands, or the results, are sharded along them, or sums are written elsewhere.
    """
    sharding = shard.operand_shardings[0]
    assert sharding is not None, "a dimension with several parts has a sharding"
    axes = [axis for dim in dims for axis in sharding.of_dimension(dim).axes]
    if str(getattr(shard.operands[0].type, "element_type", "")).startswith(_WITHOUT_SUM):
        raise no_local_form("elements are looked up along a sharded dimension, and PyTorch does not add them")
    if shard.is_resolved or _are_used_elsewhere(shard, axes):
        raise no_local_form("elements are looked up along a sharded dimension, and nothing sums them")
    return axes


def _summed(shard: Shard, result: Value, masks: Iterable[Value], axes: Sequence[AxisRef]) -> Combined:
    """Return the sum over devices of elements, which are zeros where a mask says that other devices have them."""
    emit, sharding = shard.emit, shard.operand_shardings[0]
    assert sharding is not None, "a dimension with several parts has a sharding"
    # The sum with a negative zero is each number itself, also where that is a negative zero.
    zero: float = -0.0 if "f" in str(getattr(result.type, "element_type", "")) else 0
    for mask in masks:
        other = False if _typed(result, "i1") == result.type else zero
        attributes = {"operand_names": ("condition", "self"), "other": other}
        result = emit.op("aten.where.ScalarOther", [mask, result], [result.type], attributes).result
    groups = replica_groups(shard.mesh(sharding), axes)
    return Combined([shard.ops.all_reduce(emit, result, groups, Combiner.ADD)])


def _without(shard: Shard, value: Value, dim: int) -> Value:
    """Return a tensor without a dimension of one element."""
    return shard.ops.reshape(shard.emit, value, [*value.shape[:dim], *value.shape[dim + 1 :]])


def localize_put_back(op: Op, shard: Shard) -> Sequence[Value]:
    """Return the part of the device with what a slice or an element along a sharded dimension is replaced by."""
    rank = len(operand_shape(op, 0))
    dim = normal(attribute(op, "dim", 0), rank)
    size, source = operand_shape(op, 0)[dim], operand_shape(op, 1)
    if dim not in shard.sharded_dims(shard.operand_shardings[0]) or (len(source) == rank and source[dim] == size):
        return local_by_types(op, shard)
    shard.check_kinds()
    value, put = shard.operands[:2]
    rows = _own_rows(op, shard, put, dim, value.shape, shard.operand_shardings[0])
    return [value if rows is None else _where(shard, *rows, value)]


def localize_gradient(op: Op, shard: Shard) -> Sequence[Value]:
    """Return the part of the device of the gradient of a slice or an element, which is zeros around it."""
    out, source, sharding = result_shape(op), operand_shape(op, 0), shard.result_shardings[0]
    dim = normal(attribute(op, "dim", 0), len(out))
    if dim not in shard.sharded_dims(sharding) or source == out:
        return input_sized(op, shard)
    shard.check_kinds()
    emit, shape = shard.emit, shard.result_shape()
    rows = _own_rows(op, shard, shard.operands[0], dim, shape, sharding)
    if rows is None:
        return [shard.ops.resize(emit, shard.operands[0], shape)]
    mask, taken = rows
    attributes = {"operand_names": ("condition", "self"), "other": 0}
    return [emit.op("aten.where.ScalarOther", [mask, taken], [taken.type], attributes).result]


def _own_rows(
    op: Op, shard: Shard, put: Value, dim: int, shape: Sequence[int], sharding: TensorSharding | None
) -> tuple[Value, Value] | None:
    """Return which rows of the part of the device a slice or an element takes, and what it puts there in that shape.

    Args:
        op: The op with the slice or the index.
        shard: Its form on the device.
        put: What is put there; it is None where that is empty.
        dim: The dimension.
        shape: The shape of the part.
        sharding: The sharding of the tensor that has the part.
    """
    emit, rank = shard.emit, len(shape)
    if len(put.shape) < rank:
        put = shard.ops.reshape(emit, put, [*put.shape[:dim], 1, *put.shape[dim:]])
    start, step = _start_and_step(op, result_shape(op)[dim])
    if not put.shape[dim]:
        return None
    row = _numbers(shard, shape[dim])
    row = aten(emit, "add.Tensor", {"self": row, "other": _offset(shard, sharding, dim, shape[dim])}, row.shape)
    number = aten(emit, "sub.Scalar", {"self": row}, row.shape, other=start)
    number = aten(emit, "floor_divide.Scalar", {"self": number}, row.shape, other=step) if step > 1 else number
    number = _clamped(shard, number, 0, put.shape[dim] - 1)
    target = aten(emit, "mul.Scalar", {"self": number}, row.shape, other=step)
    target = aten(emit, "add.Scalar", {"self": target}, row.shape, other=start)
    mask = shard.ops.reshape(emit, _equal(shard, row, target), _line_shape(shape, dim))
    return mask, aten(emit, "index_select.default", {"self": put, "index": number}, shape, dim=dim)


def _numbers(shard: Shard, count: int) -> Value:
    """Return the numbers below a count."""
    type_ = TensorType((count,), "i64")
    return shard.emit.op("aten.arange.default", (), [type_], {"end": count, "device": "cpu"}).result


def _start_and_step(op: Op, size: int) -> tuple[int, int]:
    """Return the first element of a slice or an element along a dimension, and how far the next one is away."""
    if attribute(op, "index") is not None:
        return normal(attribute(op, "index"), size), 1
    start, _, step = slice(*(attribute(op, name) for name in ("start", "end", "step"))).indices(size)
    return start, step


def _line_shape(shape: Sequence[int], dim: int) -> list[int]:
    """Return the sizes in which a line of elements along a dimension broadcasts to a shape."""
    return [size if each == dim else 1 for each, size in enumerate(shape)]


def _indexed_parts(op: Op, shard: Shard) -> dict[int, int]:
    """Return dimension to operand number, for the indexed dimensions that are sharded."""
    sharded = shard.sharded_dims(shard.operand_shardings[0])
    return {dim: number for dim, number in indexed_dims(op).items() if dim in sharded}


def _are_used_elsewhere(shard: Shard, axes: Sequence[AxisRef]) -> bool:
    others = [item for item in (*shard.operand_shardings[1:], *shard.result_shardings) if item is not None]
    used = [axis for item in others for dim in range(item.rank) for axis in item.of_dimension(dim).axes]
    return any(first.overlaps(second) for first in axes for second in used)


def _offset(shard: Shard, sharding: TensorSharding | None, dim: int, part: int) -> Value:
    """Return where the part of a sharded dimension that the device has begins."""
    assert sharding is not None, "a dimension with several parts has a sharding"
    return shard.ops.offset(shard.emit, [position * part for position in shard.positions(sharding, dim)])


def _place(op: Op, shard: Shard, dim: int, number: int) -> Value:
    """Return the indices of an operand into the part of the device, negative or too large where they lie in others."""
    index, emit = shard.operands[number], shard.emit
    if index.type != _typed(index, "i64"):
        attributes = {"operand_names": ("self",), "dtype": "torch.int64"}
        index = emit.op("aten._to_copy.default", [index], [_typed(index, "i64")], attributes).result
    if operand_names(op)[number] not in _INDEX_NAMES or op.name.split(".")[1] in _FROM_END:
        # Indices in brackets may count from the end, too.
        zero = {"operand_names": ("self",), "other": 0}
        is_negative = emit.op("aten.lt.Scalar", [index], [_typed(index, "i1")], zero).result
        from_end = aten(emit, "add.Scalar", {"self": index}, index.shape, other=operand_shape(op, 0)[dim])
        index = _where(shard, is_negative, from_end, index)
    offset = _offset(shard, shard.operand_shardings[0], dim, shard.operands[0].shape[dim])
    return aten(emit, "sub.Tensor", {"self": index, "other": offset}, index.shape)


def _clamped(shard: Shard, value: Value, low: int, high: int) -> Value:
    return aten(shard.emit, "clamp.default", {"self": value}, value.shape, min=low, max=high)


def _equal(shard: Shard, first: Value, second: Value) -> Value:
    attributes = {"operand_names": ("self", "other")}
    return shard.emit.op("aten.eq.Tensor", [first, second], [_typed(first, "i1")], attributes).result


def _where(shard: Shard, mask: Value, value: Value, other: Value) -> Value:
    attributes = {"operand_names": ("condition", "self", "other")}
    return shard.emit.op("aten.where.self", [mask, value, other], [value.type], attributes).result


def _typed(value: Value, element_type: str) -> TensorType:
    return TensorType(tuple(value.shape), element_type)


def _mask_shape(op: Op, shard: Shard, number: int) -> list[int]:
    """Return the sizes in which a mask of the elements of an index broadcasts to the result on the device."""
    positions, index, result = indexed_dims(op), list(shard.operands[number].shape), shard.result_shape()
    if operand_names(op)[number] in _INDEX_NAMES:
        (dim,) = positions
        is_line = "index_select" in op.name
        return [index[0] if index and each == dim else 1 for each in range(len(result))] if is_line else index
    dims = sorted(positions)
    is_adjacent = dims == list(range(dims[0], dims[0] + len(dims)))
    rank = max(len(operand_shape(op, each)) for each in positions.values())
    before = (dims[0] if is_adjacent else 0) + rank - len(index)
    return [1] * before + index + [1] * (len(result) - before - len(index))
