"""The interfaces by which ops become local: the part of an op that one device runs, on shards of its tensors.

`LocalOpInterface` adapts one op: the attributes that hold sizes, the offset of the shard. `LocalOps` makes the ops that
a dialect has for communication between devices. Both write through a `LocalEmitter`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Protocol, runtime_checkable

from attrs import field

from shardy_py.ir.graph.attributes import Attribute
from shardy_py.ir.graph.program import Op, Region, Value
from shardy_py.ir.graph.types import TensorType, Type, static_shape
from shardy_py.ir.interfaces.local_ops import Groups, LocalEmitter, LocalOps, Pairs
from shardy_py.ir.interfaces.local_types import CannotLocalize, local_type, no_local_form
from shardy_py.ir.interfaces.ops import OpSemantics
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.rule import FactorKind
from shardy_py.sharding.shard_positions import shard_positions
from shardy_py.sharding.tensor import TensorSharding
from shardy_py.values import frozen

__all__ = [
    "CannotLocalize",
    "Combined",
    "Groups",
    "LocalEmitter",
    "LocalOpInterface",
    "LocalOps",
    "LocalSemantics",
    "LocalValue",
    "Localize",
    "Pairs",
    "Shard",
    "local_by_types",
    "local_constant",
    "local_form",
    "local_type",
    "no_local_form",
]

_MOVING = (FactorKind.NEED_REPLICATION, FactorKind.PERMUTATION)


@frozen(eq=False)
class Shard:
    """One op on one device: its operands there, and how its tensors are sharded.

    Args:
        op: The op of the global program.
        operands: Its operands on the device.
        operand_shardings: The shardings of the operands.
        result_shardings: The shardings of the results.
        meshes: The meshes of the program by name.
        semantics: What is known about ops.
        emit: Where new ops go.
        ops: The ops of the dialect.
        regions: Gives the regions of the op on the device; each call makes them anew.
        local_of: Gives what the device has of another value of the global program, and its sharding; None where that
            is not known.
        is_resolved: Whether all communication counts as written already: then an op takes its shards as they are, as
            in the reference, or is an error.
    """

    op: Op
    operands: Sequence[Value]
    operand_shardings: Sequence[TensorSharding | None]
    result_shardings: Sequence[TensorSharding | None]
    meshes: Mapping[str, Mesh]
    semantics: OpSemantics
    emit: LocalEmitter
    ops: LocalOps
    regions: Callable[[], Sequence[Region]] = field(default=tuple)
    local_of: Callable[[Value], tuple[Value, TensorSharding | None] | None] = field(default=lambda value: None)
    is_resolved: bool = False

    def mesh(self, sharding: TensorSharding) -> Mesh:
        """Return the mesh of a sharding."""
        return sharding.mesh if isinstance(sharding.mesh, Mesh) else self.meshes[sharding.mesh]

    def parts(self, sharding: TensorSharding | None, dim: int) -> int:
        """Return the number of parts of a dimension."""
        return 1 if sharding is None else sharding.of_dimension(dim).sharded_size(self.mesh(sharding))

    def positions(self, sharding: TensorSharding, dim: int) -> list[int]:
        """Return the number of the part of a dimension that each device has."""
        return shard_positions(self.mesh(sharding), sharding.of_dimension(dim).axes)

    def local_type(self, type_: Type, sharding: TensorSharding | None) -> Type:
        """Return the type of a shard."""
        return local_type(type_, sharding, self.meshes)

    def result_type(self, number: int = 0) -> Type:
        """Return the type of a result on the device."""
        return self.local_type(self.op.results[number].type, self.result_shardings[number])

    def result_shape(self, number: int = 0) -> tuple[int, ...]:
        """Return the sizes of a result on the device."""
        return static_shape(self.result_type(number)) or ()

    def sharded_dims(self, sharding: TensorSharding | None) -> list[int]:
        """Return the dimensions that have several parts."""
        rank = 0 if sharding is None else sharding.rank
        return [dim for dim in range(rank) if self.parts(sharding, dim) > 1]

    def padded_dims(self, number: int) -> list[int]:
        """Return the dimensions of an operand that have padding on a device, as they do not divide into equal parts."""
        shape, sharding = static_shape(self.op.operands[number].type) or (), self.operand_shardings[number]
        return [dim for dim in self.sharded_dims(sharding) if shape[dim] % self.parts(sharding, dim)]

    def masked(self, number: int, dims: Sequence[int], fill: Value) -> Value:
        """Return an operand on the device with its padding along some dimensions replaced by a scalar.

        Args:
            number: The number of the operand.
            dims: The dimensions; those without padding do not matter.
            fill: The scalar.
        """
        sharding, value = self.operand_shardings[number], self.operands[number]
        for dim in self.padded_dims(number):
            if dim in dims and sharding is not None:
                count = self.real_size(sharding, dim, self.op.operands[number].shape[dim])
                value = self.ops.mask(self.emit, value, dim, count, fill)
        return value

    def real_size(self, sharding: TensorSharding, dim: int, size: int) -> Value:
        """Return the number of elements without padding that the device has along a dimension.

        Args:
            sharding: The sharding of the tensor.
            dim: The dimension.
            size: The size of the dimension of the whole tensor.
        """
        part = -(-size // self.parts(sharding, dim))
        table = [min(max(size - position * part, 0), part) for position in self.positions(sharding, dim)]
        return self.ops.offset(self.emit, table)

    def copy(self, **changes: Attribute) -> list[Value]:
        """Return the results of the op on the shards.

        They have the shardings of the op's results, unless attributes differ: then they are those of another op.

        Args:
            changes: The attributes that differ.
        """
        types = [self.result_type(number) for number in range(len(self.op.results))]
        new_op = self.emit.op_like(self.op, self.operands, types, changes, self.regions())
        if not changes:
            table = self.op.program.shardings
            pairs = zip(new_op.results, self.result_shardings, strict=True)
            table.update({value.id: sharding for value, sharding in pairs if sharding is not None})
        return list(new_op.results)

    def own_part(self, value: Value, sharding: TensorSharding) -> Value:
        """Slice the shard of the device from a global tensor.

        Args:
            value: The tensor, which is the same on all devices.
            sharding: The sharding that tells the parts.
        """
        starts: list[Sequence[int] | None] = []
        sizes = static_shape(self.local_type(value.type, sharding)) or ()
        for dim, size in enumerate(sizes):
            is_cut = self.parts(sharding, dim) > 1
            starts.append([position * size for position in self.positions(sharding, dim)] if is_cut else None)
        if not any(starts):
            return value
        padded_shape = [size * self.parts(sharding, dim) for dim, size in enumerate(sizes)]
        value = self.ops.resize(self.emit, value, padded_shape)
        return self.ops.dynamic_slice(self.emit, value, [self.ops.offset(self.emit, start) for start in starts], sizes)

    def check_kinds(self, kinds: Collection[FactorKind] = _MOVING) -> None:
        """Check that no sharded factor needs data of other devices before the op.

        Args:
            kinds: The kinds of factors that do.

        Raises:
            CannotLocalize: one needs replication or a permutation.
        """
        rule = self.semantics.get_sharding_rule(self.op)
        if rule is None:
            return
        shardings = (*self.operand_shardings, *self.result_shardings)
        for mapping, sharding in zip(rule.mappings, shardings, strict=True):
            for dim in self.sharded_dims(sharding):
                for factor in mapping[dim] if mapping else ():
                    kind = rule.kind(factor)
                    if kind in kinds and rule.factor_sizes[factor] > 1:
                        word = kind.value.replace("_", " ")
                        raise no_local_form(f"dimension {dim} of a tensor is sharded along a {word} factor")


class LocalOpInterface(Protocol):
    """An op that says itself how it becomes local.

    A form that is not for all ops of a name also has a method ``applies``, which is given the op and returns a bool;
    the others become local as their rule and their types say.
    """

    def localize(self, op: Op, shard: Shard) -> Sequence[Value]:
        """Return the results on one device.

        Args:
            op: The op of the global program.
            shard: Its operands on the device; `Shard.copy` makes the op with other attributes.

        Raises:
            CannotLocalize: it has no local form under these shardings.
        """
        ...


@frozen(eq=False)
class LocalValue:
    """A value of a local program, with the sharding of its global value.

    Args:
        value: The value.
        sharding: The sharding of the global value; None where each device has it whole.
    """

    value: Value
    sharding: TensorSharding | None


class Combined(tuple[Value, ...]):
    """Results of an op that combined the partial results of devices itself: no collective has to do it."""


Localize = Callable[[Op, Shard], Sequence[Value]]
"""Returns the results of an op on one device."""


@runtime_checkable
class LocalSemantics(Protocol):
    """The queries about local forms; a `Registry` answers them."""

    def get_local(self, op: Op) -> Localize | None:
        """Return the local form of an op, or None where it follows from its rule and its types."""
        ...

    @property
    def local_ops(self) -> Mapping[str, LocalOps]:
        """The ops for communication by the dialects that have them."""
        ...


def local_form(op: Op, semantics: OpSemantics) -> Localize | None:
    """Return the local form that an op has of its own, or None."""
    return semantics.get_local(op) if isinstance(semantics, LocalSemantics) else None


def local_constant(op: Op, shard: Shard) -> Sequence[Value]:
    """Return the part of a constant that the device has."""
    type_, sharding = shard.result_type(), shard.result_shardings[0]
    if isinstance(type_, TensorType):
        constant = shard.ops.constant(shard.emit, op, type_)
        if constant is not None:
            return [constant]
    global_constant = shard.ops.whole_constant(shard.emit, op)
    return [global_constant if sharding is None else shard.own_part(global_constant, sharding)]


def local_by_types(op: Op, shard: Shard) -> Sequence[Value]:
    """Return the results of an op of which only the types change."""
    shard.check_kinds()
    return shard.copy()
