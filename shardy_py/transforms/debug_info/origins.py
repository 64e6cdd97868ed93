"""Sharding origins: for every axis of every value, the user's annotation that it goes back to; stored as attributes.

Mirrors source_sharding.cc::prepareShardingOriginsHandler and source_sharding.cc::saveShardingOriginsOnModule.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from attrs import field

from shardy_py.ir.graph.data_flow import edge_user, shardable_value
from shardy_py.ir.graph.op_names import CONSTRAINT, DATA_FLOW_EDGE, MANUAL_COMPUTATION, SHARDING_GROUP
from shardy_py.ir.graph.program import Op, Program, Value
from shardy_py.ir.graph.walk import entry_block
from shardy_py.ir.interfaces.ops import OpSemantics
from shardy_py.sharding.axes import AxisRef
from shardy_py.sharding.tensor import TensorSharding
from shardy_py.values import define, frozen


def function_dictionaries(function: Op, name: str) -> tuple[Mapping[str, Any], ...]:
    """Return the dictionaries of ``arg_attrs`` or ``res_attrs``, empty ones where there are none."""
    count = len(function.function_results) if name == "res_attrs" else _num_arguments(function)
    return function.attributes.get(name) or ({},) * count


def update_function(function: Op, name: str, updates: Mapping[int, Mapping[str, Any]]) -> None:
    """Set attributes of arguments (``arg_attrs``) or results (``res_attrs``) of a function, by position."""
    if updates:
        old = function_dictionaries(function, name)
        function.attributes[name] = tuple([{**item, **updates.get(index, {})} for index, item in enumerate(old)])


def _num_arguments(function: Op) -> int:
    for region in function.regions:
        for block in region.blocks:
            return len(block.arguments)
    return 0


ORIGIN_NAME = "sdy.sharding_origin_name"

OriginKind = Literal["input", "output", "constraint", "mc_input", "mc_output"]


@frozen
class ShardingOrigin:
    """One annotation of the user.

    Args:
        kind: What was annotated: a function's input or output, a constraint, a manual computation's input or output.
        index: The position among inputs or outputs.
        number: The number of the constraint or manual computation in its program.
    """

    kind: OriginKind
    index: int = 0
    number: int = 0

    def __str__(self) -> str:
        if self.kind == "constraint":
            return f"constraint_{self.number}"
        if self.kind in ("input", "output"):
            return f"{self.kind}: {self.index}"
        return f"mc_{self.number}_{self.kind.removeprefix('mc_')}: {self.index}"


AxisOrigins = dict[AxisRef, ShardingOrigin]


@define
class OriginTable:
    """The origins of the axes of every value, by the id of the value that carries the sharding.

    Attributes:
        of_value: Value id to axis to origin; what is there first stays.
        mates: Value id to the ids of the members of its sharding group.
    """

    of_value: dict[int, AxisOrigins] = field(factory=dict)
    mates: dict[int, tuple[int, ...]] = field(factory=dict)

    def add(self, carrier: Value | None, sharding: TensorSharding | None, origin: ShardingOrigin) -> None:
        """Record that all axes of an annotated sharding come from the annotation."""
        if carrier is None or sharding is None:
            return
        for dim in sharding.dim_shardings:
            for axis in dim.axes:
                self.of_value.setdefault(carrier.id, {}).setdefault(axis, origin)

    def spread(self, axis: AxisRef, source: Value | None, target: Value | None) -> None:
        """Record that an axis moved from one value to another."""
        if source is None or target is None:
            return
        origin = self._find(axis, source.id)
        if origin is not None:
            self.of_value.setdefault(target.id, {}).setdefault(axis, origin)

    def _find(self, axis: AxisRef, source: int) -> ShardingOrigin | None:
        """Return the origin of an axis of a value.

        The axis may have been split or merged on its way, or come through a sharding group. Shardings on other ops
        than constraints have no origin.
        """
        for candidate in (source, *self.mates.get(source, ())):
            known = self.of_value.get(candidate, {})
            if axis in known:
                return known[axis]
            for other, origin in known.items():
                if other.contains(axis) or axis.contains(other):
                    return origin
        return None


def collect_origins(program: Program, semantics: OpSemantics) -> OriginTable:
    """Return the origins that the annotations of a program make, and set the names of the annotated ops."""
    return _Collector(program, semantics).run()


class _Collector:
    def __init__(self, program: Program, semantics: OpSemantics) -> None:
        self.program = program
        self.semantics = semantics
        self.table = OriginTable()

    def run(self) -> OriginTable:
        """Collect the annotations; those that come first win."""
        for number, op in enumerate(ops_named(self.program, CONSTRAINT)):
            self._add_constraint(op, number)
        for number, op in enumerate(ops_named(self.program, MANUAL_COMPUTATION)):
            self._add_manual_computation(op, number)
        for op in self.program.functions.values():
            self._add_function(op)
        self._add_groups()
        return self.table

    def _carrier(self, value: Value) -> Value | None:
        return shardable_value(value, self.semantics)

    def _sharding(self, value: Value) -> TensorSharding | None:
        carrier = self._carrier(value)
        return None if carrier is None else self.program.shardings.get(carrier.id)

    def _add_constraint(self, op: Op, number: int) -> None:
        origin = ShardingOrigin("constraint", number=number)
        self.table.add(op.result, self.program.shardings.get(op.result.id), origin)
        op.attributes[ORIGIN_NAME] = str(origin)
        self.table.add(self._carrier(op.operands[0]), self._sharding(op.operands[0]), origin)

    def _add_manual_computation(self, op: Op, number: int) -> None:
        arguments = op.regions[0].block.arguments
        for index, sharding in enumerate(op.attributes["in_shardings"].shardings):
            origin = ShardingOrigin("mc_input", index, number)
            self.table.add(self._carrier(arguments[index]), sharding, origin)
            source = op.operands[index]
            self.table.add(self._carrier(source), self._sharding(source), origin)
        for index, sharding in enumerate(op.attributes["out_shardings"].shardings):
            self.table.add(self._carrier(op.results[index]), sharding, ShardingOrigin("mc_output", index, number))
        op.attributes[ORIGIN_NAME] = f"mc_{number}"

    def _add_function(self, op: Op) -> None:
        blocks = [block for region in op.regions for block in region.blocks][:1]
        for block in blocks:
            for index, argument in enumerate(block.arguments):
                self.table.add(argument, self.program.shardings.get(argument.id), ShardingOrigin("input", index))
            returned = block.last.operands if block.last else ()
            for index, (value, result) in enumerate(zip(returned, op.function_results, strict=False)):
                sharding = self.program.shardings.get(result.id)
                self.table.add(self._carrier(value), sharding, ShardingOrigin("output", index))

    def _add_groups(self) -> None:
        members: dict[Any, list[int]] = {}
        for op in ops_named(self.program, SHARDING_GROUP):
            carrier = self._carrier(op.operands[0])
            if carrier is not None:
                members.setdefault(op.attributes["group_id"], []).append(carrier.id)
        for ids in members.values():
            for member in ids:
                self.table.mates[member] = tuple([other for other in ids if other != member])


def ops_named(program: Program, name: str) -> Iterator[Op]:
    """Iterate over the ops of a name, those inside an op before it."""
    yield from (op for op in _post_order(program.body.ops) if op.name == name)


def _post_order(ops: Iterator[Op]) -> Iterator[Op]:
    for op in ops:
        for region in op.regions:
            for block in region.blocks:
                yield from _post_order(block.ops)
        yield op


def as_dictionary(origins: Mapping[AxisRef, ShardingOrigin]) -> dict[str, str]:
    """Return the attribute of one value; axes are written without their quotes, in order."""
    return dict(sorted((str(axis).replace('"', ""), str(origin)) for axis, origin in origins.items()))


def renamed(origins: Any, name: str) -> Any:
    """Return a dictionary of origins in which ``name`` is called ``self``."""
    return {axis: "self" if origin == name else origin for axis, origin in origins.items()}


def returned_position(value: Value, operands: Sequence[Value], terminator: Op) -> int | None:
    """Return the number of the function result that a value is: of several uses by the terminator, the newest."""
    if not any(operand is value for operand in operands):
        return None
    return next(number for user, number in reversed(value.uses) if user is terminator)


ORIGINS = "sdy.sharding_origins"


def save_origins(program: Program, table: OriginTable) -> None:
    """Set the attributes of all values that are still there; an annotation calls its own axes ``self``."""
    for function in program.functions.values():
        _save_function(function, table)
    for op in program.walk():
        if op.results:
            _save_results(op, table)
    for op in ops_named(program, CONSTRAINT):
        _call_self(op, op.attributes.get(ORIGIN_NAME, ""))
    for function in program.functions.values():
        _call_function_self(function)
    for op in ops_named(program, MANUAL_COMPUTATION):
        _call_edges_self(op)


def _save_function(function: Op, table: OriginTable) -> None:
    block = entry_block(function)
    if block is None:
        return
    arguments = {
        argument.index: {ORIGINS: as_dictionary(table.of_value[argument.id])}
        for argument in block.arguments
        if argument.id in table.of_value
    }
    update_function(function, "arg_attrs", arguments)
    if block.last is None:
        return
    returned = block.last.operands
    results: dict[int, dict[str, Any]] = {}
    for value in returned:
        origins = table.of_value.get(value.id)
        position = returned_position(value, returned, block.last)
        if origins is not None and position is not None:
            results[position] = {ORIGINS: as_dictionary(origins)}
    update_function(function, "res_attrs", results)


def _save_results(op: Op, table: OriginTable) -> None:
    origins_of_results = [table.of_value.get(value.id) for value in op.results]
    if all(origins is None for origins in origins_of_results):
        return
    if op.name in (CONSTRAINT, DATA_FLOW_EDGE):
        op.attributes[ORIGINS] = as_dictionary(origins_of_results[0] or {})
        return
    old = op.attributes.get(ORIGINS)
    former = old if isinstance(old, tuple) else ({},) * len(origins_of_results)
    op.attributes[ORIGINS] = tuple(
        [before if now is None else as_dictionary(now) for before, now in zip(former, origins_of_results, strict=True)]
    )


def _call_self(op: Op, name: str) -> None:
    origins = op.attributes.get(ORIGINS)
    if isinstance(origins, dict):
        op.attributes[ORIGINS] = renamed(origins, name)


def _call_function_self(function: Op) -> None:
    for name, kind in (("arg_attrs", "input"), ("res_attrs", "output")):
        updates = {
            index: {ORIGINS: renamed(item[ORIGINS], str(ShardingOrigin(kind, index)))}  # type: ignore[arg-type]
            for index, item in enumerate(function_dictionaries(function, name))
            if ORIGINS in item
        }
        update_function(function, name, updates)


def _call_edges_self(op: Op) -> None:
    name = op.attributes.get(ORIGIN_NAME, "")
    for kind, values in (("input", op.regions[0].block.arguments), ("output", op.results)):
        for value in values:
            edge = edge_user(value)
            if edge is not None:
                _call_self(edge, f"{name}_{kind}: {value.index}")
