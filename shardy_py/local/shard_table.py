"""The values of a program as each device has them, with the shardings that say which part it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from attrs import evolve, field

from shardy_py.errors import Diagnostic
from shardy_py.ir.graph.program import Op, Program, Region, Value
from shardy_py.ir.graph.types import Type
from shardy_py.ir.interfaces.local import CannotLocalize, LocalEmitter, LocalOps, LocalValue, Shard, local_type
from shardy_py.ir.interfaces.ops import OpSemantics
from shardy_py.local.masks import fill_padding
from shardy_py.local.type_checks import check_shard_type
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.tensor import TensorSharding
from shardy_py.values import define


@define
class ShardTable:
    """The values of one program as each device has them.

    Attributes:
        program: The program.
        semantics: What is known about ops.
        ops: The ops for communication.
        convert_region: Converts a region of an op.
        is_resolved: Whether all communication counts as written already.
        padding: A number for the padding of all values; None leaves there what ops make of it.
        recorded: Where to record what each value became, or None.
        local: The value on each device of each value of the program.
        shardings: The shardings that values have in the local program, where they are not those of the program.
    """

    program: Program
    semantics: OpSemantics
    ops: LocalOps
    convert_region: Callable[[Region], Region]
    is_resolved: bool
    padding: float | None
    recorded: dict[int, LocalValue] | None
    local: dict[int, Value] = field(factory=dict, init=False)
    shardings: dict[int, TensorSharding | None] = field(factory=dict, init=False)
    meshes: Mapping[str, Mesh] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.meshes = self.program.meshes

    def sharding(self, value: Value) -> TensorSharding | None:
        """Return the sharding of a value in the local program."""
        if value.id in self.shardings:
            return self.shardings[value.id]
        return self.program.sharding(value)

    def have_same_shards(self, operand: Value, result: Value) -> bool:
        """Return whether a device has the same part of the operand and the result of an op."""
        before, after = self.sharding(operand), self.sharding(result)
        if before is None:
            return after is None or after.is_fully_replicated
        return before.is_equivalent(after, ignore_unreduced_axes=True)

    def type(self, type_: Type, sharding: TensorSharding | None, op: Op | None) -> Type:
        """Return the type of a shard.

        Args:
            type_: The type of the value.
            sharding: Its sharding.
            op: The op that an error names.

        Raises:
            CannotLocalize: the value cannot be cut into shards of one type.
        """
        try:
            return local_type(type_, sharding, self.meshes)
        except CannotLocalize as error:
            if op is None:
                raise
            raise CannotLocalize(*(at_op(item, op) for item in error.diagnostics)) from None

    def map(self, values: Sequence[Value], local: Sequence[Value]) -> None:
        """Record the local values of some values.

        Raises:
            VerificationError: one has another type than its shard.
        """
        for value, new in zip(values, local, strict=True):
            sharding = self.sharding(value)
            check_shard_type(value, sharding, new.type, self.meshes)
            self.local[value.id] = new
            if self.recorded is not None:
                self.recorded[value.id] = LocalValue(new, sharding)

    def keep_shardings(self, values: Sequence[Value], local: Sequence[Value]) -> None:
        """Give local values the shardings of the global ones: they tell which part each device has."""
        table = self.program.shardings
        for value, new in zip(values, local, strict=True):
            sharding = table.get(value.id)
            if sharding is not None:
                table.setdefault(new.id, sharding)

    def fill_padding(self, op: Op, values: Sequence[Value], emit: LocalEmitter) -> None:
        """Fill the padding of some values with the number for it, if there is one.

        Args:
            op: The op of which they are results, or arguments of its regions.
            values: The values of the global program.
            emit: Where ops go.
        """
        if self.padding is None:
            return
        shard = self.emitting_shard(op, emit)
        for value in values:
            local, sharding = self.local[value.id], self.sharding(value)
            self.local[value.id] = fill_padding(shard, local, value, sharding, self.padding)

    def emitting_shard(self, op: Op, emit: LocalEmitter) -> Shard:
        """Return a shard of an op without operands, to emit ops that belong to its regions."""
        return Shard(op, (), (), (), self.meshes, self.semantics, emit, self.ops)

    def shard(self, op: Op, emit: LocalEmitter) -> Shard:
        """Return an op with its operands on the device."""
        return Shard(
            op,
            [self.local[value.id] for value in op.operands],
            [self.sharding(value) for value in op.operands],
            [self.sharding(value) for value in op.results],
            self.meshes,
            self.semantics,
            emit,
            self.ops,
            lambda: [self.convert_region(region) for region in op.regions],
            lambda value: (self.local[value.id], self.sharding(value)) if value.id in self.local else None,
            is_resolved=self.is_resolved,
        )


def at_op(item: Diagnostic, op: Op) -> Diagnostic:
    """Return a diagnostic with an op and its location, unless it has others."""
    return evolve(item, op=item.op or op.name, location=item.location or op.location)
