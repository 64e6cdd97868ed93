"""The interfaces by which ops become local: the part of an op that one device runs, on shards of its tensors.

`LocalOpInterface` adapts one op: the attributes that hold sizes, the offset of the shard. `LocalOps` makes the ops that
a dialect has for communication between devices. Both write through a `LocalEmitter`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from copy import copy
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from attrs import field

from shardy_py.errors import Diagnostic, UnsupportedError
from shardy_py.ir.graph.attributes import Attribute
from shardy_py.ir.graph.program import Block, Op, Program, Region, Value
from shardy_py.ir.graph.rule_attributes import RULE_ATTRIBUTE
from shardy_py.ir.graph.types import TensorType, Type, static_shape
from shardy_py.ir.interfaces.ops import OpSemantics
from shardy_py.sharding.combiner import Combiner
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.rule import FactorKind
from shardy_py.sharding.shard_positions import shard_positions
from shardy_py.sharding.tensor import TensorSharding
from shardy_py.values import define, frozen

if TYPE_CHECKING:
    from shardy_py.ir.interfaces.local_collective import LocalCollective
    from shardy_py.sharding.shard_moves import Windows

Groups = tuple[tuple[int, ...], ...]
"""Groups of device numbers; the order within a group is the order of the shards."""
Pairs = Sequence[tuple[int, int]]
"""Source and target device numbers."""
_MOVING = (FactorKind.NEED_REPLICATION, FactorKind.PERMUTATION)


class CannotLocalize(UnsupportedError):
    """An op has no local form under its shardings."""


def no_local_form(reason: str) -> CannotLocalize:
    """Return the error for an op that has no local form under its shardings."""
    hint = "reshard its operands first, or give the op a local form, local=..., in its dialect"
    return CannotLocalize(Diagnostic("no-local-form", reason, hint=hint))


@define
class LocalEmitter:
    """Adds ops at the end of a block.

    Attributes:
        program: The program.
        block: The block.
        next_channel: Gives the number of the next channel.
    """

    program: Program
    block: Block
    next_channel: Callable[[], int]

    def op(
        self,
        name: str,
        operands: Sequence[Value] = (),
        types: Sequence[Type] = (),
        attributes: Mapping[str, Attribute] | None = None,
        regions: Sequence[Region] = (),
    ) -> Op:
        """Return a new op, which stands at the end of the block."""
        made = Op(self.program, name, operands, types, dict(attributes or {}), regions)
        self.block.append(made)
        return made

    def op_like(
        self,
        model: Op,
        operands: Sequence[Value],
        types: Sequence[Type],
        changes: Mapping[str, Attribute] | None = None,
        regions: Sequence[Region] = (),
    ) -> Op:
        """Return a new op with the name, the attributes and the location of another one.

        Args:
            model: The other op.
            operands: The operands.
            types: The types of the results.
            changes: The attributes that differ.
            regions: The regions, at least as many as the other op has.

        Raises:
            ValueError: there are less.
        """
        if len(regions) < len(model.regions):
            expected = f"expected {len(model.regions)} regions as in '{model.name}', got {len(regions)}"
            raise ValueError(f"{expected}; give regions=shard.regions()")
        attributes = copy(model.attributes)
        if RULE_ATTRIBUTE in attributes:
            del attributes[RULE_ATTRIBUTE]
        for name, value in (changes or {}).items():
            attributes[name] = value
        made = Op(self.program, model.name, operands, types, attributes, regions)
        if model.id in self.program.call_sites:
            self.program.call_sites[made.id] = self.program.call_sites[model.id]
        self.block.append(made)
        return made

    def erase_after(self, last: Op | None) -> None:
        """Erase the ops behind one of the block, the last of them first; all ops where it is None."""
        while self.block.last is not None and self.block.last is not last:
            self.block.last.erase()


class LocalOps(Protocol):
    """The ops of a dialect for data that moves between devices, and for the place of a device among the others.

    Attributes:
        are_general: Whether programs of other dialects may have them, too.
    """

    are_general: bool = True

    def all_gather(self, emit: LocalEmitter, value: Value, dim: int, groups: Groups) -> Value:
        """Return the shards of each group, joined along a dimension."""
        ...

    def all_reduce(self, emit: LocalEmitter, value: Value, groups: Groups, combiner: Combiner) -> Value:
        """Return the combination of the values of each group."""
        ...

    def reduce_scatter(self, emit: LocalEmitter, value: Value, dim: int, groups: Groups, combiner: Combiner) -> Value:
        """Return one part per device of the combination of the values of each group."""
        ...

    def all_to_all(self, emit: LocalEmitter, value: Value, split_dim: int, concat_dim: int, groups: Groups) -> Value:
        """Return the parts that the devices of each group send each other, joined along a dimension."""
        ...

    def collective_permute(self, emit: LocalEmitter, value: Value, pairs: Pairs) -> Value:
        """Return the value of the source of each device; zeros where it has none."""
        ...

    def offset(self, emit: LocalEmitter, table: Sequence[int] | None) -> Value:
        """Return the scalar that a table has for the device; 0 without a table."""
        ...

    def dynamic_slice(self, emit: LocalEmitter, value: Value, starts: Sequence[Value], sizes: Sequence[int]) -> Value:
        """Return the part of a tensor at a start."""
        ...

    def reshape(self, emit: LocalEmitter, value: Value, shape: Sequence[int]) -> Value:
        """Return the elements in another shape."""
        ...

    def transpose(self, emit: LocalEmitter, value: Value, permutation: Sequence[int]) -> Value:
        """Return the tensor with its dimensions in another order."""
        ...

    def resize(self, emit: LocalEmitter, value: Value, shape: Sequence[int]) -> Value:
        """Return a tensor cut or extended at the high ends of its dimensions; what the new elements hold is open."""
        ...

    def mask(self, emit: LocalEmitter, value: Value, dim: int, count: Value | int, fill: Value) -> Value:
        """Return a tensor with a scalar in the place of all but the first elements along a dimension.

        Args:
            emit: Where the ops go.
            value: The tensor.
            dim: The dimension.
            count: The number of elements that stay.
            fill: The scalar.
        """
        ...

    def update_slice(self, emit: LocalEmitter, value: Value, update: Value, starts: Sequence[Value]) -> Value | None:
        """Return a tensor with another one in it, which begins at a start; None where the dialect has no such op."""
        return None

    def scalar(self, emit: LocalEmitter, element_type: str, number: Combiner | float) -> Value | None:
        """Return a constant scalar; None where the element type has no such number.

        Args:
            emit: Where the ops go.
            element_type: The element type.
            number: The number, or the combiner whose neutral value it shall be.
        """
        ...

    def windows(self, shard: Shard, value: Value, dim: int, sharding: TensorSharding, windows: Windows) -> Value | None:
        """Return what each device needs of a dimension, sent piece by piece; None where the dialect gathers instead.

        Args:
            shard: The op for which elements move.
            value: What the device has.
            dim: The dimension.
            sharding: A sharding whose parts along the dimension the windows are for.
            windows: The windows.
        """
        return None

    def padded_attributes(
        self, op: Op, operands: Sequence[Sequence[int]], results: Sequence[Type]
    ) -> Mapping[str, Attribute] | None:
        """Return the attributes of an op that hold sizes, changed for padded tensors; None where there are none.

        Args:
            op: The op without padding.
            operands: The shapes of its padded operands.
            results: The types of its padded results.
        """
        return None

    def constant(self, emit: LocalEmitter, op: Op, type_: TensorType) -> Value | None:
        """Return the constant of an op with all elements equal in another type; None where they differ."""
        ...

    def whole_constant(self, emit: LocalEmitter, op: Op) -> Value:
        """Return the constant of an op as it is."""
        ...

    def on_device(
        self, emit: LocalEmitter, device: int, types: Sequence[Type], run: Callable[[LocalEmitter], Sequence[Value]]
    ) -> Sequence[Value]:
        """Return what ops give that run on one device only; the others have zeros, and tokens of their own.

        Args:
            emit: Where the ops go.
            device: The number of the device.
            types: The types of the results.
            run: Adds the ops that run on the device, and returns their results.

        Raises:
            CannotLocalize: the dialect has no ops for that.
        """
        raise no_local_form("the dialect has no ops that run on one device only")

    def for_replicas(self) -> LocalOps:
        """Return the ops for devices that are replicas of a program, and not partitions."""
        return self

    def for_mesh_axes(self) -> LocalOps:
        """Return the ops whose groups are written as axes of a mesh, if the dialect can do so."""
        return self

    def read_collective(self, op: Op) -> LocalCollective | None:
        """Return the collective that an op of a local program is, or None."""
        return None

    def exchanged(self, op: Op, dim: int, parts: int) -> float | None:
        """Return what the local form of an op sends where its first operand and its results are sharded.

        Args:
            op: An op of the program before it becomes local, with a local form.
            dim: The dimension of these tensors that is sharded.
            parts: The number of its parts.

        Returns:
            The elements along the dimension that a device sends on average; None where the form needs it whole.
        """
        return None

    def collected(self, op: Op, dim: int, parts: int) -> float | None:
        """Return what the local form of an op sends where its first operand is sharded, and its results are whole.

        Args:
            op: An op of the program before it becomes local, with a local form.
            dim: The dimension of the operand that is sharded.
            parts: The number of its parts.

        Returns:
            How often a device sends the elements of the results; None where the form needs the operand whole.
        """
        return None

    def composed(self, op: Op, producer: Op) -> tuple[str, Mapping[str, Attribute]] | None:
        """Return the op that makes of the operands of a producer what an op makes of its only operand, its result.

        Args:
            op: An op of the program before it becomes local.
            producer: Another one.

        Returns:
            The name of the op and its attributes; None where the dialect has no such op.
        """
        return None

    def partial_operands(self, op: Op, combiner: Combiner) -> Sequence[Collection[int]]:
        """Return the groups of operands in which an op may take partial results; its result is partial then, too.

        An op that adds has one group of all that it adds, one that multiplies has a group for each factor.

        Args:
            op: An op of the program before it becomes local.
            combiner: How the partial results combine.
        """
        return ()

    def is_device_number(self, op: Op) -> bool:
        """Return whether an op of a local program gives the number of the device, or what follows from it only."""
        return False

    def list_groups(self, op: Op) -> None:
        """Write the groups of an op as lists of devices, where it is a collective that has them as axes of a mesh."""
        return None

    def fold_device(self, program: Program, device: int) -> None:
        """Put the number of a device into a local program, and fold what follows from it."""
        return None

    def renumber_devices(self, program: Program, copies: Sequence[Sequence[int]]) -> None:
        """Write a local program for other device numbers.

        Args:
            program: The program, which changes.
            copies: For each group of devices that runs the program, the new number of each of its devices.

        Raises:
            CannotLocalize: the dialect cannot do so.
        """
        raise no_local_form("the dialect has no form of the program for devices with other numbers")


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
        """Return an operand on the device with a scalar in the place of the padding along some dimensions.

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
        """Return the number of elements of the whole tensor, without padding, that the device has along a dimension.

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
        made = self.emit.op_like(self.op, self.operands, types, changes, self.regions())
        if not changes:
            table = self.op.program.shardings
            pairs = zip(made.results, self.result_shardings, strict=True)
            table.update({value.id: sharding for value, sharding in pairs if sharding is not None})
        return list(made.results)

    def own_part(self, value: Value, sharding: TensorSharding) -> Value:
        """Return the part that the device has of a whole tensor.

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
        whole = [size * self.parts(sharding, dim) for dim, size in enumerate(sizes)]
        value = self.ops.resize(self.emit, value, whole)
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
    """A value of a local program, with what it is a part of.

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


def local_type(type_: Type, sharding: TensorSharding | None, meshes: Mapping[str, Mesh]) -> Type:
    """Return the type of a shard of a tensor; a dimension that does not divide is padded at its high end.

    Raises:
        CannotLocalize: the size of a sharded dimension is not known.
    """
    if sharding is None or sharding.is_fully_replicated or not isinstance(type_, TensorType):
        return type_
    mesh = sharding.mesh if isinstance(sharding.mesh, Mesh) else meshes[sharding.mesh]
    for number, (size, dim) in enumerate(zip(type_.shape, sharding.dim_shardings, strict=True)):
        if size is None and dim.sharded_size(mesh) > 1:
            raise no_local_form(f"dimension {number} of {type_} is dynamic and sharded")
    if type_.is_foreign:
        raise no_local_form(f"the sizes in {type_} are known to its dialect only")
    return TensorType(sharding.local_shape(type_.shape, mesh), type_.element_type)


def local_constant(op: Op, shard: Shard) -> Sequence[Value]:
    """Return the part of a constant that the device has."""
    type_, sharding = shard.result_type(), shard.result_shardings[0]
    if isinstance(type_, TensorType):
        made = shard.ops.constant(shard.emit, op, type_)
        if made is not None:
            return [made]
    whole = shard.ops.whole_constant(shard.emit, op)
    return [whole if sharding is None else shard.own_part(whole, sharding)]


def local_by_types(op: Op, shard: Shard) -> Sequence[Value]:
    """Return the results of an op of which only the types change."""
    shard.check_kinds()
    return shard.copy()
