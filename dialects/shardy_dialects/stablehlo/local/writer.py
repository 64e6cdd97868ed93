"""Short names for the ops that move elements along one dimension of a tensor on a device."""

from __future__ import annotations

from collections.abc import Sequence

from shardy_dialects.stablehlo.local.literals import array, literal
from shardy_dialects.stablehlo.splats import splat_of
from shardy_py.ir.graph.attributes import RawAttribute
from shardy_py.ir.graph.program import Op, Value
from shardy_py.ir.graph.types import TensorType, tensor
from shardy_py.ir.interfaces.local import LocalEmitter, LocalOps
from shardy_py.values import frozen

_INDEX = "i64"


@frozen
class Writer:
    """Adds ops to the program of a device; what differs between devices is a table by device number.

    Args:
        emit: Where the ops go.
        ops: The ops for the place of a device among the others.
    """

    emit: LocalEmitter
    ops: LocalOps

    def sliced(self, value: Value, dim: int, start: int, limit: int, stride: int = 1) -> Value:
        """Return the elements between two places of a dimension."""
        if (start, limit, stride) == (0, value.shape[dim], 1):
            return value
        starts, limits, strides = [0] * len(value.shape), list(value.shape), [1] * len(value.shape)
        starts[dim], limits[dim], strides[dim] = start, limit, stride
        sizes = {dim: -(-(limit - start) // stride)}
        attributes = {
            "start_indices": tuple(starts),
            "limit_indices": tuple(limits),
            "strides": tuple(strides),
        }
        return self.emit.op("stablehlo.slice", [value], [resized(value, sizes)], attributes).result

    def part(self, value: Value, dim: int, starts: Sequence[int], size: int) -> Value:
        """Return some elements of a dimension, from the place that a table has for the device."""
        if len(set(starts)) == 1:
            return self.sliced(value, dim, starts[0], starts[0] + size)
        return self.dynamic_part(value, dim, self.ops.offset(self.emit, starts), size)

    def dynamic_part(self, value: Value, dim: int, start: Value, size: int) -> Value:
        """Return some elements of a dimension, from a place on; they are elements of the tensor at any place."""
        zero = self.integer(0, start)
        places = [start if number == dim else zero for number in range(len(value.shape))]
        sizes = [size if number == dim else length for number, length in enumerate(value.shape)]
        return self.ops.dynamic_slice(self.emit, value, places, sizes)

    def padded(
        self, value: Value, dim: int, low: int, high: int, *, interior: int = 0, fill: Value | None = None
    ) -> Value:
        """Return a tensor with elements added at the ends of a dimension and between its elements, or taken off.

        Args:
            value: The tensor.
            dim: The dimension.
            low: The number of elements before the first one.
            high: The number of elements behind the last one.
            interior: The number of elements between two others.
            fill: The added scalar, zero by default.
        """
        if not (low or high or interior):
            return value
        lows, highs, interiors = ([0] * len(value.shape) for _ in range(3))
        lows[dim], highs[dim], interiors[dim] = low, high, interior
        size = max(0, value.shape[dim] + max(0, value.shape[dim] - 1) * interior + low + high)
        attributes = {
            "edge_padding_low": tuple(lows),
            "edge_padding_high": tuple(highs),
            "interior_padding": tuple(interiors),
        }
        operands = [value, self.zero_like(value) if fill is None else fill]
        return self.emit.op("stablehlo.pad", operands, [resized(value, {dim: size})], attributes).result

    def joined(self, pieces: Sequence[tuple[int, Value]], dim: int, size: int) -> Value:
        """Return pieces at their places in a dimension, with zeros between them.

        Args:
            pieces: The places and the pieces, in the order of their places.
            dim: The dimension.
            size: The size of the result.
        """
        parts, end = [], 0
        for place, piece in pieces:
            if place > end:
                parts.append(self.filled(piece, dim, place - end, None))
            parts.append(piece)
            end = place + piece.shape[dim]
        if end < size:
            parts.append(self.filled(pieces[0][1], dim, size - end, None))
        if len(parts) == 1:
            return parts[0]
        joined_type = resized(parts[0], {dim: size})
        return self.emit.op("stablehlo.concatenate", parts, [joined_type], {"dimension": dim}).result

    def filled(self, like: Value, dim: int, size: int, fill: Value | None) -> Value:
        """Return a tensor with a scalar everywhere, zero by default, shaped as another one up to a dimension."""
        return self.spread(self.zero_like(like) if fill is None else fill, resized(like, {dim: size}))

    def spread(self, scalar: Value, type_: TensorType, dims: Sequence[int] = ()) -> Value:
        """Return a scalar, or a tensor along some dimensions, at all places of a shape."""
        if scalar.type == type_:
            return scalar
        attributes = {"broadcast_dimensions": array(dims)}
        return self.emit.op("stablehlo.broadcast_in_dim", [scalar], [type_], attributes).result

    def mask(self, size: int, lows: Sequence[int], highs: Sequence[int]) -> Value:
        """Return which of some places lie between two that tables have for the device."""
        places = self.counter(size)
        low, high = (self.spread(self.entry(table), tensor(size, dtype=_INDEX)) for table in (lows, highs))
        return self.binary("and", self.compare("GE", places, low), self.compare("LT", places, high))

    def entry(self, table: Sequence[int]) -> Value:
        """Return the number that a table has for the device."""
        if len(set(table)) == 1:
            return self.scalar(str(table[0]), _INDEX)
        return self.ops.offset(self.emit, table)

    def select(self, mask: Value, dim: int, inside: Value, outside: Value) -> Value:
        """Return one tensor where a mask of a dimension is true, and another one elsewhere."""
        wide = self.spread(mask, tensor(*inside.shape, dtype="i1"), [dim])
        return self.emit.op("stablehlo.select", [wide, inside, outside], [inside.type]).result

    def counter(self, size: int, element_type: str = _INDEX) -> Value:
        """Return the numbers from 0 on."""
        attributes = {"iota_dimension": 0}
        return self.emit.op("stablehlo.iota", (), [tensor(size, dtype=element_type)], attributes).result

    def compare(self, direction: str, left: Value, right: Value) -> Value:
        """Return the comparison of two tensors of integers."""
        attributes = {"comparison_direction": RawAttribute(f"#stablehlo<comparison_direction {direction}>")}
        result = tensor(*left.shape, dtype="i1")
        return self.emit.op("stablehlo.compare", [left, right], [result], attributes).result

    def binary(self, name: str, left: Value, right: Value) -> Value:
        """Return the result of an elementwise op on two tensors of one type."""
        return self.emit.op(f"stablehlo.{name}", [left, right], [left.type]).result

    def convert(self, value: Value, element_type: str) -> Value:
        """Return a tensor with another element type."""
        converted_type = tensor(*value.shape, dtype=element_type)
        return (
            value
            if value.type == converted_type
            else self.emit.op("stablehlo.convert", [value], [converted_type]).result
        )

    def integer(self, number: int, like: Value) -> Value:
        """Return a scalar with the element type of another value."""
        return self.scalar(str(number), element_type_of(like))

    def zero_like(self, value: Value) -> Value:
        """Return the scalar zero of the element type of a tensor."""
        element_type = element_type_of(value)
        return self.scalar(literal(0, element_type) or "0", element_type)

    def scalar(self, text: str, element_type: str) -> Value:
        """Return a constant."""
        type_ = tensor(dtype=element_type)
        attributes = {"value": RawAttribute(f"dense<{text}> : {type_}")}
        return self.emit.op("stablehlo.constant", (), [type_], attributes).result


def element_type_of(value: Value) -> str:
    """Return the element type of a tensor."""
    if not isinstance(value.type, TensorType):
        raise TypeError(f"{value.type} is not a tensor")
    return value.type.element_type


def resized(value: Value, sizes: dict[int, int]) -> TensorType:
    """Return the type of a tensor with other sizes of some dimensions."""
    shape = [sizes.get(dim, size) for dim, size in enumerate(value.shape)]
    return TensorType(tuple(shape), element_type_of(value))


_DYNAMIC_SLICE = "stablehlo.dynamic_slice"


_OFFSET = "i64"


def clamped_slice(writer: Writer, value: Value) -> Value:
    """Return a value of which a part is taken; of a dynamic slice one that starts inside of its operand."""
    producer = value.defining_op
    if producer is None or producer.name != _DYNAMIC_SLICE or _is_inside(producer):
        return value
    operand, *starts = producer.operands
    clamped = []
    for dim, start in enumerate(starts):
        low, high = (writer.scalar(str(number), _OFFSET) for number in (0, operand.shape[dim] - value.shape[dim]))
        index = writer.convert(start, _OFFSET)
        clamped.append(writer.emit.op("stablehlo.clamp", [low, index, high], [index.type]).result)
    return writer.emit.op(_DYNAMIC_SLICE, [operand, *clamped], [value.type], {"slice_sizes": value.shape}).result


def _is_inside(slice_op: Op) -> bool:
    """Return whether it is known that a slice needs no clamping."""
    operand, *starts = slice_op.operands
    sizes = zip(operand.shape, slice_op.results[0].shape, starts, strict=True)
    return all(_is_known(start, full_size - size) for full_size, size, start in sizes)


def _is_known(start: Value, largest: int) -> bool:
    number, producer = splat_of(start), start.defining_op
    if number is None:
        return producer is not None and producer.name == "stablehlo.clamp"
    return 0 <= number <= largest
