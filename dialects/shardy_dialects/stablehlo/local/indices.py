"""Indices into sharded dimensions: their place in what a device has, and elements that are looked up there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import evolve, field

from shardy_dialects.stablehlo.local.windows import Cut
from shardy_dialects.stablehlo.local.writer import Writer, resized
from shardy_py.ir.graph.program import Value
from shardy_py.ir.graph.types import tensor
from shardy_py.ir.interfaces.local import Combined, Shard, no_local_form
from shardy_py.sharding.combiner import Combiner
from shardy_py.sharding.shard_positions import replica_groups
from shardy_py.values import frozen

_TYPE = "i64"


@frozen
class IndexVectors:
    """The indices of a gather or a scatter.

    Args:
        value: The indices.
        vector_dim: The dimension of the vectors; the rank of the indices where each is a scalar.
        dims: The dimension of the operand that each component indexes.
    """

    value: Value
    vector_dim: int
    dims: Sequence[int]
    _shape: tuple[int, ...] = field(init=False)

    def __attrs_post_init__(self) -> None:
        shape = list(self.value.shape)
        if self.vector_dim < len(shape):
            del shape[self.vector_dim]
        object.__setattr__(self, "_shape", tuple(shape))

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of the indices without the dimension of the vectors."""
        return self._shape

    def component(self, writer: Writer, number: int) -> Value:
        """Return one component of all vectors."""
        value = writer.convert(self.value, _TYPE)
        if self.vector_dim == len(value.shape):
            return value
        part = writer.sliced(value, self.vector_dim, number, number + 1)
        return writer.ops.reshape(writer.emit, part, self.shape)

    def with_components(self, writer: Writer, components: Mapping[int, Value]) -> IndexVectors:
        """Return the indices with other components."""
        if self.vector_dim == len(self.value.shape):
            return evolve(self, value=components.get(0, self.value))
        wide = (*self.shape[: self.vector_dim], 1, *self.shape[self.vector_dim :])
        parts = [
            writer.ops.reshape(writer.emit, components.get(number, self.component(writer, number)), wide)
            for number in range(len(self.dims))
        ]
        pieces = [(number, part) for number, part in enumerate(parts)]
        return evolve(self, value=writer.joined(pieces, self.vector_dim, len(parts)))


def clamped(writer: Writer, index: Value, largest: int) -> Value:
    """Return indices that are moved between 0 and the largest one."""
    low, high = (writer.integer(number, index) for number in (0, largest))
    return writer.emit.op("stablehlo.clamp", [low, index, high], [index.type]).result


def on_device(writer: Writer, index: Value, cut: Cut, part: int) -> Value:
    """Return the places in the part of the device, negative or too large where they lie in other parts.

    Args:
        writer: Where the ops go.
        index: The indices into the whole dimension.
        cut: The dimension.
        part: The number of elements of a part.
    """
    table = cut.by_device([position * part for position in range(cut.parts)])
    offset = writer.spread(writer.ops.offset(writer.emit, table), tensor(*index.shape, dtype=_TYPE))
    return writer.binary("subtract", index, offset)


def is_inside(writer: Writer, place: Value, size: int) -> Value:
    """Return which places lie between 0 and a size."""
    low, high = (writer.spread(writer.integer(number, place), resized(place, {})) for number in (0, size))
    return writer.binary("and", writer.compare("GE", place, low), writer.compare("LT", place, high))


def with_zeros_around(shard: Shard, writer: Writer, value: Value, dim: int, size: int) -> Value:
    """Return the part of the first operand that the device has, with zeros around it and in the place of padding.

    Args:
        shard: The op on one device.
        writer: Where the ops go.
        value: The part.
        dim: The dimension along which windows are looked up.
        size: The number of elements of a window.
    """
    sharding = shard.operand_shardings[0]
    if sharding is not None and dim in shard.padded_dims(0):
        count = shard.real_size(sharding, dim, shard.op.operands[0].shape[dim])
        value = shard.ops.mask(shard.emit, value, dim, count, writer.zero_like(value))
    return writer.padded(value, dim, size, size)


def place_among_zeros(writer: Writer, index: Value, cut: Cut, size: int) -> Value:
    """Return where windows begin in a part with zeros around it.

    Args:
        writer: Where the ops go.
        index: Where they begin in the whole dimension, as 64-bit integers; they clamp against it.
        cut: The dimension.
        size: The number of elements of a window.
    """
    part, full_size = cut.shard.operands[0].shape[cut.dim], cut.shard.op.operands[0].shape[cut.dim]
    place = on_device(writer, clamped(writer, index, full_size - size), cut, part)
    shift = writer.spread(writer.integer(size, place), resized(place, {}))
    return clamped(writer, writer.binary("add", place, shift), part + size)


def summed(shard: Shard, value: Value, cuts: Sequence[Cut]) -> Combined:
    """Return the sum of what the devices have that share the looked-up dimensions.

    Raises:
        CannotLocalize: sums are written elsewhere.
    """
    sharding = shard.operand_shardings[0]
    if sharding is None or shard.is_resolved:
        raise no_local_form("windows of several elements are looked up along a sharded dimension")
    axes = [axis for cut in cuts for axis in sharding.of_dimension(cut.dim).axes]
    groups = replica_groups(shard.mesh(sharding), axes)
    return Combined([shard.ops.all_reduce(shard.emit, value, groups, Combiner.ADD)])
