"""Slots of values."""

from __future__ import annotations

from shardy_py.ir.graph.builder import Builder
from shardy_py.ir.graph.types import OpaqueType, tensor
from shardy_py.propagation.slots import NO_SLOT, assign_slots, slots_of
from tests.unit.propagation.toy import toy_registry

T = tensor(8, 8)


def loop(*, with_edge: bool) -> Builder:
    """Return a program with a loop, whose result has a data-flow edge or not."""
    b = Builder()
    with b.function("main", [T]) as (x,):
        with b.region_op("toy.loop", [x], [T]) as made, b.region(made, [T]) as (carried,):
            b.emit("toy.yield", [carried])
        result = b.op("sdy.data_flow_edge", [made.result], [T]) if with_edge else made.result
        b.return_(b.op("toy.neg", [result], [T]))
    return b


def test_each_value_has_a_slot_and_stands_for_it() -> None:
    """Without data flow the slots are the values, those of functions among them."""
    b = Builder()
    with b.function("main", [T, T]) as (x, y):
        z = b.op("toy.add", [x, y], [T])
        b.return_(z)
    slots = assign_slots(b.program, toy_registry())
    (function,) = b.program.functions.values()
    assert set(slots.values) == {x, y, z, *function.function_results}
    assert all(slots.get(value) == slot for slot, value in enumerate(slots.values))


def test_the_values_of_an_edge_share_its_slot() -> None:
    """Owner, target and edge are one slot, and the edge stands for it."""
    b = loop(with_edge=True)
    slots = assign_slots(b.program, toy_registry())
    (edge,) = [op for op in b.program.walk() if op.name == "sdy.data_flow_edge"]
    owner = edge.operands[0]
    (carried,) = owner.owning_op.regions[0].block.arguments
    assert slots.get(owner) == slots.get(carried) == slots.get(edge.result)
    assert slots.values[slots.get(owner)] is edge.result
    assert slots.edges[edge.id].owner is owner
    assert slots.without_edge == set()


def test_without_an_edge_the_owner_stands_for_the_slot() -> None:
    """Targets share the slot all the same, and it is noted that no edge belongs to it."""
    b = loop(with_edge=False)
    slots = assign_slots(b.program, toy_registry())
    (made,) = [op for op in b.program.walk() if op.name == "toy.loop"]
    slot = slots.get(made.result)
    assert slots.values[slot] is made.result
    assert slots.without_edge == {slot}
    assert slots.get(made.regions[0].block.arguments[0]) == slot


def test_the_slots_of_an_op_are_those_of_operands_then_results() -> None:
    """Each use counts, and a value that came after the slots were assigned has none."""
    b = Builder()
    with b.function("main", [T]) as (x,):
        y = b.op("toy.add", [x, x], [T])
        b.return_(y)
    slots = assign_slots(b.program, toy_registry())
    assert slots_of([x, x], [y], slots.of_value) == (slots.get(x), slots.get(x), slots.get(y))
    with b.function("other", [OpaqueType("!toy.token")]) as (token,):
        b.return_()
    assert slots.get(token) == NO_SLOT
