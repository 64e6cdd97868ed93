"""The ops that a dialect has for communication between devices, and the emitter that adds them to a local program."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from copy import copy
from typing import TYPE_CHECKING, Protocol

from shardy_py.ir.graph.attributes import Attribute
from shardy_py.ir.graph.program import Block, Op, Program, Region, Value
from shardy_py.ir.graph.rule_attributes import RULE_ATTRIBUTE
from shardy_py.ir.graph.types import TensorType, Type
from shardy_py.ir.interfaces.local_types import no_local_form
from shardy_py.sharding.combiner import Combiner
from shardy_py.sharding.tensor import TensorSharding
from shardy_py.values import define, frozen

if TYPE_CHECKING:
    from shardy_py.ir.interfaces.local import Shard
    from shardy_py.sharding.shard_moves import Windows


Groups = tuple[tuple[int, ...], ...]
"""Groups of device numbers; the order within a group is the order of the shards."""
Pairs = Sequence[tuple[int, int]]
"""Source and target device numbers."""


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
        new_op = Op(self.program, name, operands, types, dict(attributes or {}), regions)
        self.block.append(new_op)
        return new_op

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
        new_op = Op(self.program, model.name, operands, types, attributes, regions)
        if model.id in self.program.call_sites:
            self.program.call_sites[new_op.id] = self.program.call_sites[model.id]
        self.block.append(new_op)
        return new_op

    def erase_after(self, last: Op | None) -> None:
        """Erase the ops behind an op of the block, the last first; all ops where it is None."""
        while self.block.last is not None and self.block.last is not last:
            self.block.last.erase()


class LocalOps(Protocol):
    """The ops of a dialect for communication between devices, and for offsets that depend on the device.

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
        """Combine the values of each group, and return the part of each device."""
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
        """Return a tensor cut or extended at the high ends of its dimensions; new elements are undefined."""
        ...

    def mask(self, emit: LocalEmitter, value: Value, dim: int, count: Value | int, fill: Value) -> Value:
        """Return a tensor with all but the first elements along a dimension replaced by a scalar.

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

    def windows(
        self,
        shard: Shard,
        value: Value,
        dim: int,
        sharding: TensorSharding,
        windows: Windows,
        fill: Value | None = None,
    ) -> Value | None:
        """Exchange the window of a dimension that each device needs; None where the dialect gathers instead.

        Args:
            shard: The op for which elements move.
            value: What the device has.
            dim: The dimension.
            sharding: A sharding whose parts along the dimension the windows are for.
            windows: The windows.
            fill: The scalar for places that no part has elements for; None where they do not matter.
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
        """Run ops on one device only and return their results; the other devices have zeros.

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

        The local form combines the results itself then: nothing adds up partial results after it.

        Args:
            op: An op of the program before it becomes local, with a local form.
            dim: The dimension of the operand that is sharded.
            parts: The number of its parts.

        Returns:
            How often a device sends the elements of the results; None where the form needs the operand whole.
        """
        return None

    def placed(self, op: Op, number: int, dim: int, parts: int) -> float | None:
        """Return what the local form of an op sends where an operand that it writes is sharded as its result.

        Args:
            op: An op of the program before it becomes local, with a local form.
            number: The number of the operand, which is smaller than the result.
            dim: The dimension that is sharded, along the same axes in both.
            parts: The number of its parts.

        Returns:
            The elements along the dimension that a device sends on average; None where the form needs it whole.
        """
        return None

    def at_known_place(self, emit: LocalEmitter, op: Op) -> Value | None:
        """Return the result of an op that reads or writes at a place that constants tell, made by simpler ops.

        A slice at a place that is known moves the elements that change their device, and no others. Intermediate
        results with the rank of the result are sharded as it is.

        Args:
            emit: Where the ops go.
            op: An op of the program before it becomes local.

        Returns:
            The result; None where the op is another one, or constants do not tell the place.
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
        """Substitute the number of a device in a local program, and fold constants."""
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


@frozen
class LocalCollective:
    """A collective of a local program.

    Args:
        kind: ``all_gather``, ``all_reduce``, ``reduce_scatter``, ``all_to_all`` or ``collective_permute``.
        type: The type of its result on a device.
        groups: The groups of devices that it runs in, each in the order of the shards; of a permutation the pairs of
            source and target.
        location: The source location, or "".
    """

    kind: str
    type: Type
    groups: tuple[tuple[int, ...], ...]
    location: str = ""

    def __str__(self) -> str:
        return f"{self.kind} {self.type} {[list(group) for group in self.groups]}"
