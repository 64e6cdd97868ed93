"""Slots: integers for the values whose shardings propagate.

Values that an edge ties together share one slot (the edge's); values that cannot be sharded have none.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from attrs import field

from shardy_py.errors import Diagnostic, UnsupportedError
from shardy_py.ir.graph.data_flow import edge_user
from shardy_py.ir.graph.op_names import FUNCTION
from shardy_py.ir.graph.program import Block, Op, Program, Value
from shardy_py.ir.graph.types import TensorType, Type
from shardy_py.ir.graph.walk import all_ops, entry_block, region_arguments
from shardy_py.ir.interfaces.ops import OpSemantics, ShardableDataFlowOpInterface
from shardy_py.support.identity import identity
from shardy_py.values import define

ABSENT = -1
NO_SLOT = ABSENT


@define
class Slots:
    """The slots of a program.

    Attributes:
        of_value: Value id to slot.
        values: Slot to the value that stands for it.
        edges: Every ``sdy.data_flow_edge`` with the op and the owner it belongs to, by op id.
        data_flow: The data flow interface of every op that has one, by op id.
        numbers: The numbers below all ids to come; those that are ids of ops are these very objects, as a number takes
            32 bytes, and these may serve as slots and as steps, too.
        with_several_results: The ops with several results.
        unused: The ops no result of which has a use.
        without_edge: The slots that several values of a data flow op share without an edge.
    """

    of_value: IdMap
    numbers: list[int]
    values: list[Value] = field(factory=list)
    edges: dict[int, EdgeInfo] = field(factory=dict)
    data_flow: dict[int, ShardableDataFlowOpInterface] = field(factory=dict)
    with_several_results: list[Op] = field(factory=list)
    unused: list[Op] = field(factory=list)
    without_edge: set[int] = field(factory=set)

    def get(self, value: Value) -> int:
        """Return the slot of a value, or `NO_SLOT`."""
        return self.of_value.get(value.id, NO_SLOT)

    def add(self, value: Value) -> int:
        """Return the slot of a value, a new one where it has none."""
        slot = self.of_value.numbers[value.id]
        if slot == ABSENT:
            slot = self.of_value[value.id] = len(self.values)
            self.values.append(value)
        return slot


class EdgeInfo(NamedTuple):
    """Op and value that an ``sdy.data_flow_edge`` belongs to."""

    owner_op: Op
    owner: Value
    data_flow: ShardableDataFlowOpInterface


def slots_of(operands: Iterable[Value], results: Iterable[Value], slot_of: IdMap) -> tuple[int, ...]:
    """Return the slots of a step: those of its operands, then of its results; `NO_SLOT` for values without one."""
    numbers = slot_of.numbers
    # A loop, as a comprehension would take twice as long for so few values.
    slots = []
    for value in operands:
        slots.append(numbers[value.id])
    for value in results:
        slots.append(numbers[value.id])
    return tuple(slots)


def assign_slots(program: Program, semantics: OpSemantics) -> Slots:
    """Return the slots of all values, and what else a walk over all ops tells."""
    shared = list(range(program.next_id()))
    slots = Slots(IdMap(len(shared)), shared)
    numbers, values, unused = slots.of_value.numbers, slots.values, slots.unused
    flow_names = semantics.names_with_data_flow(program.op_names)
    for op in all_ops(program):
        op_id, results = op.id, op.results
        shared[op_id] = op_id
        if len(results) == 1 and op.name not in flow_names:
            # This is nearly every op, and the rest of the loop does the same with more questions.
            (value,) = results
            if numbers[value.id] == ABSENT:
                numbers[value.id] = shared[len(values)]
                values.append(value)
            if not value.uses:
                unused.append(op)
            continue
        if not any(value.uses for value in results):
            unused.append(op)
        if op.name == FUNCTION:
            _add_function(op, slots)
            continue
        if op.name in flow_names:
            data_flow = semantics.get_data_flow(op)
            if data_flow is not None:
                # Results on no edge have no slot, as region arguments on none: nothing says how they are sharded.
                _add_data_flow_op(op, data_flow, slots)
                results = [value for value in results if numbers[value.id] != ABSENT]
        for value in results:
            if numbers[value.id] == ABSENT:
                numbers[value.id] = shared[len(values)]
                values.append(value)
        if len(results) > 1:
            slots.with_several_results.append(op)
    return slots


def _add_function(function: Op, slots: Slots) -> None:
    block = entry_block(function)
    for argument in block.arguments if block else ():
        slots.add(argument)
    for value in function.function_results:
        slots.add(value)


def _add_data_flow_op(op: Op, data_flow: ShardableDataFlowOpInterface, slots: Slots) -> None:
    slots.data_flow[op.id] = data_flow
    numbers = slots.of_value.numbers
    for owner in (*data_flow.get_block_argument_edge_owners(op), *data_flow.get_op_result_edge_owners(op)):
        edge = edge_user(owner)
        slot = slots.add(edge.results[0] if edge else owner)
        if edge:
            slots.edges[edge.id] = EdgeInfo(op, owner, data_flow)
        else:
            slots.without_edge.add(slot)
        numbers[owner.id] = slot
        for target in data_flow.get_non_edge_owner_targets(op, owner):
            numbers[target.id] = slot


class IdMap(Mapping[int, int]):
    """Mapping from ids, which a program gives out in order, to numbers that are not negative.

    It takes a third of the memory of a dictionary.

    Attributes:
        numbers: Id to number; `ABSENT` for ids without one. For loops that cannot afford a call for each id.
    """

    __slots__ = ("numbers",)

    def __init__(self, size: int) -> None:
        """Return an empty mapping for the ids below ``size``."""
        self.numbers = [ABSENT] * size

    def __setitem__(self, id_: int, number: int) -> None:
        self.numbers[id_] = number

    def __getitem__(self, id_: int) -> int:
        number = self.get(id_)
        if number is None:
            raise KeyError(id_)
        return number

    def get(self, id_: int, default: Any = None) -> Any:
        """Return the number of an id, or the default for one that has none or is newer than the mapping."""
        number = self.numbers[id_] if 0 <= id_ < len(self.numbers) else ABSENT
        return default if number == ABSENT else number

    def __iter__(self) -> Iterator[int]:
        return (id_ for id_, number in enumerate(self.numbers) if number != ABSENT)

    def __len__(self) -> int:
        return len(self.numbers) - self.numbers.count(ABSENT)


def check_types(program: Program, *, arguments: bool = False) -> None:
    """Check that every result has a type that can be sharded, or none at all.

    Mirrors basic_propagation.cc::allValidShapes.

    Args:
        program: The program.
        arguments: Whether to check the arguments of blocks, too. The reference does not, although it leaves such
            arguments without a sharding.

    Raises:
        UnsupportedError: a dynamic shape or a tuple; every such op is named, or only the arguments that dynamic sizes
            follow from.
    """
    known = program.known_types()
    if known is not None and not any(map(_type_problem, known)):
        return
    if not any(map(_type_problem, _distinct_types(program, arguments))):
        return
    problems = [
        (value, op)
        for op in all_ops(program)
        for value in ((*op.results, *region_arguments(op)) if arguments else op.results)
        if _type_problem(value.type) is not None
    ]
    if any(op.name == FUNCTION for _, op in problems):
        # The sizes of all other tensors follow from those of arguments, but not their ranks, nor what tuples hold.
        problems = [item for item in problems if item[1].name == FUNCTION or not isinstance(item[0].type, TensorType)]
    raise UnsupportedError(*(_type_diagnostic(value, op) for value, op in problems))


def _distinct_types(program: Program, arguments: bool) -> Collection[Type]:
    """Return the distinct types of all results, by identity, as equal types are mostly one object."""
    ops = all_ops(program)
    types = {identity(value.type): value.type for op in ops for value in op.results}
    if arguments:
        types.update({identity(value.type): value.type for op in ops if op.regions for value in region_arguments(op)})
    return types.values()


def _type_diagnostic(value: Value, op: Op) -> Diagnostic:
    """Return what is wrong with a value whose type cannot be sharded."""
    hint = "give every dimension a size, as with --size arg0.0=64, and pass the elements of a tuple one by one"
    prefix = f"argument {value.index}: " if isinstance(value.owner, Block) else ""
    return Diagnostic("unsupported-type", f"{prefix}{_type_problem(value.type)}", op.location, op.name, hint)


def _type_problem(type_: Type) -> str | None:
    if isinstance(type_, TensorType):
        if type_.is_static:
            return None
        return f"Shardy propagation only supports ranked tensors with a static shape. type: {type_}"
    if type_.is_tuple:
        return f"Shardy propagation doesn't support tuples: {type_}"
    if type_.text.startswith("tensor<*"):
        return f"Shardy propagation only supports ranked tensors with a static shape. type: {type_}"
    return None
