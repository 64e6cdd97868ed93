"""Arguments and results of a local program: which part of a global array each device has."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from shardy_py.errors import Diagnostic, OptionError, UnsupportedError
from shardy_py.ir.graph.program import Program, Value
from shardy_py.jax.arguments import ArrayType, as_numpy, check_type
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.shard_positions import shard_positions
from shardy_py.sharding.tensor import ReductionOp, TensorSharding
from shardy_py.values import frozen

GIVE_SIZES = "give the size as a number, by sizes= of propagate() or --size: then parts are padded"


@frozen
class Port:
    """An argument or a result of a local program.

    Args:
        type: The global shape and the dtype; -1 for a dynamic size.
        shard_shape: The shape on one device; -1 for a dynamic size.
        sharding: The sharding; None where every device has the whole array.
        mesh: Its mesh.
    """

    type: ArrayType
    shard_shape: tuple[int, ...]
    sharding: TensorSharding | None
    mesh: Mesh

    @property
    def reduction_op(self) -> ReductionOp | None:
        """The reduction by which parts of several devices combine to the value; None where it is not unreduced."""
        is_partial = self.sharding is not None and self.sharding.unreduced_axes
        return self.sharding.reduction_op if self.sharding is not None and is_partial else None

    def addends(self, count: int) -> list[int]:
        """Return, for each of some devices, which one of the parts that combine to the value it has."""
        axes = () if self.sharding is None else self.sharding.unreduced_axes
        return list(shard_positions(self.mesh, axes)) if axes else [0] * count

    @property
    def is_dynamic(self) -> bool:
        """True if a size is dynamic."""
        return -1 in self.type.shape

    def checked_shape(self, array: Any, number: int) -> tuple[int, ...]:
        """Return the shape of an array.

        Args:
            array: The global array.
            number: The number of the argument, for errors.

        Raises:
            OptionError: it has another shape or dtype.
        """
        values = as_numpy(array, number)
        check_type(values, self.type, number)
        return tuple(values.shape)

    def of_shape(self, shape: Sequence[int], number: int, *, may_pad: bool) -> Port:
        """Return the port for an array whose sizes are in the places of the dynamic ones.

        Args:
            shape: The shape of the global array.
            number: The number of the argument, for errors.
            may_pad: Whether the local program could pad dynamic sizes, if it were made with that option.

        Raises:
            OptionError: the number of parts does not divide such a size, which a local program relies on.
        """
        shard = list(self.shard_shape)
        for dim, size in enumerate(self.type.shape):
            if size >= 0:
                continue
            parts = self._part_count(dim)
            if shape[dim] % parts:
                message = f"dimension {dim} of argument {number} has {shape[dim]} elements, not {parts} equal parts"
                sizes = f"{{'arg{number}.{dim}': {shape[dim]}}}"
                hint = f"give local() pad_dynamic_sizes=True, or propagate() sizes={sizes}" if may_pad else GIVE_SIZES
                raise OptionError(Diagnostic("not-divisible", message, hint=hint))
            shard[dim] = shape[dim] // parts
        return Port(ArrayType(tuple(shape), self.type.dtype), tuple(shard), self.sharding, self.mesh)

    def of_shards(self, shape: Sequence[int]) -> Port:
        """Return the port for shards of a shape."""
        sizes = enumerate(zip(self.type.shape, shape, strict=True))
        global_shape = tuple(part * self._part_count(dim) if size < 0 else size for dim, (size, part) in sizes)
        return Port(ArrayType(global_shape, self.type.dtype), tuple(shape), self.sharding, self.mesh)

    def parts(self, count: int) -> list[tuple[slice, ...]]:
        """Return the part of the global array that each of some devices has, without padding."""
        sizes = zip(self.shard_shape, self.type.shape, strict=True)
        columns = [self._column(dim, size, length, count) for dim, (size, length) in enumerate(sizes)]
        return [tuple(column[device] for column in columns) for device in range(count)]

    def _part_count(self, dim: int) -> int:
        return 1 if self.sharding is None else self.sharding.of_dimension(dim).sharded_size(self.mesh)

    def _column(self, dim: int, size: int, length: int, count: int) -> list[slice]:
        axes = () if self.sharding is None else self.sharding.of_dimension(dim).axes
        places = shard_positions(self.mesh, axes) if axes else [0] * count
        return [slice(min(place * size, length), min((place + 1) * size, length)) for place in places]

    def split(self, array: Any, count: int, number: int) -> Any:
        """Return the shards of an array, stacked by device; zeros are where it ends before the shards do.

        The parts of an unreduced value add up to the array: one device has them, the others have zeros.

        Args:
            array: The global array.
            count: The number of devices.
            number: The number of the argument, for errors.

        Raises:
            OptionError: it has another shape or dtype.
        """
        import numpy

        values = as_numpy(array, number)
        shape = self.checked_shape(values, number)
        if self.is_dynamic:
            return self.of_shape(shape, number, may_pad=False).split(values, count, number)
        result = numpy.zeros((count, *self.shard_shape), values.dtype)
        has_zeros = self.reduction_op == "sum"
        for device, (part, number) in enumerate(zip(self.parts(count), self.addends(count), strict=True)):
            if not (has_zeros and number):
                result[device, ...][_from_zero(part)] = values[part]
        return result

    def join(self, shards: Any, number: int) -> Any:
        """Return the global array of shards; those that several devices have must agree.

        The parts of an unreduced value are combined.

        Args:
            shards: The shards, stacked by device.
            number: The number of the result, for errors.

        Raises:
            UnsupportedError: two devices have different values of the same part.
        """
        import numpy

        if self.is_dynamic:
            return self.of_shards(shards.shape[1:]).join(shards, number)
        result = numpy.zeros(self.type.shape, shards.dtype)
        first: dict[tuple[int, ...], int] = {}
        addends = self.addends(len(shards))
        for device, part in enumerate(self.parts(len(shards))):
            addend = addends[device]
            key = (addend, *(bound for item in part for bound in (item.start, item.stop)))
            real = _from_zero(part)
            if key not in first:
                first[key] = device
                elements = shards[device, ...][real]
                result[part] = (
                    _COMBINED[self.reduction_op or "sum"](numpy, result[part], elements) if addend else elements
                )
            elif shards[device, ...][real].tobytes() != shards[first[key], ...][real].tobytes():
                message = f"result {number} differs between devices {first[key]} and {device}, which have the same part"
                raise UnsupportedError(
                    Diagnostic("replicas-differ", message, hint="an op is not the same on all devices")
                )
        return result


_COMBINED: Mapping[ReductionOp, Callable[[Any, Any, Any], Any]] = {
    "sum": lambda numpy, one, other: numpy.add(one, other),
    "min": lambda numpy, one, other: numpy.minimum(one, other),
    "max": lambda numpy, one, other: numpy.maximum(one, other),
}


def _from_zero(part: tuple[slice, ...]) -> tuple[slice, ...]:
    """Return slices of the same sizes that start at zero."""
    return tuple(slice(0, item.stop - item.start) for item in part)


def make_ports(program: Program, values: Sequence[Value], types: Sequence[ArrayType]) -> tuple[Port, ...]:
    """Return the ports of the arguments or results of a local function.

    Args:
        program: The local program.
        values: The arguments or results on one device.
        types: The global types.
    """
    return tuple(_port(program, value, type_) for value, type_ in zip(values, types, strict=True))


def _port(program: Program, value: Value, type_: ArrayType) -> Port:
    sharding = program.sharding(value)
    shape = tuple(-1 if size is None else size for size in getattr(value.type, "shape", ()))
    if sharding is None:
        return Port(type_, shape, None, Mesh())
    mesh = sharding.mesh if isinstance(sharding.mesh, Mesh) else program.meshes[sharding.mesh]
    return Port(type_, shape, sharding, mesh)
