"""Slots of values, the map of ids, and types that cannot be sharded."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardy_py.errors import UnsupportedError
from shardy_py.ir.graph.builder import Builder
from shardy_py.ir.graph.types import OpaqueType, tensor
from shardy_py.propagation.slots import ABSENT, NO_SLOT, IdMap, assign_slots, check_types, slots_of
from shardy_py.sharding import Mesh
from tests.unit.propagation.toy import propagate, toy_registry

T = tensor(8, 8)


def loop(*, with_edge: bool) -> Builder:
    """Return a program with a loop, whose result has a data-flow edge or not."""
    b = Builder()
    with b.function("main", [T]) as (x,):
        with b.region_op("toy.loop", [x], [T]) as loop_op, b.region(loop_op, [T]) as (carried,):
            b.emit("toy.yield", [carried])
        result = b.op("sdy.data_flow_edge", [loop_op.result], [T]) if with_edge else loop_op.result
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
    (loop_op,) = [op for op in b.program.walk() if op.name == "toy.loop"]
    slot = slots.get(loop_op.result)
    assert slots.values[slot] is loop_op.result
    assert slots.without_edge == {slot}
    assert slots.get(loop_op.regions[0].block.arguments[0]) == slot


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


@given(st.dictionaries(st.integers(0, 30), st.integers(0, 100)))
def test_an_id_map_is_a_mapping(items: dict[int, int]) -> None:
    """It has the items that were set, in the order of the ids, and no others."""
    actual = IdMap(31)
    for id_, number in items.items():
        actual[id_] = number
    assert dict(actual) == items
    assert list(actual) == sorted(items)
    assert len(actual) == len(items)
    assert all((id_ in actual) == (id_ in items) for id_ in range(31))
    assert all(actual.numbers[id_] == items.get(id_, ABSENT) for id_ in range(31))


@pytest.mark.parametrize("id_", [-1, 2, 99])
def test_ids_that_are_newer_have_no_number(id_: int) -> None:
    """An id beyond the size of the map is absent, and so is a negative one."""
    actual = IdMap(2)
    actual[1] = 7
    assert actual.get(id_) is None
    with pytest.raises(KeyError):
        _ = actual[id_]


@pytest.mark.parametrize(
    ("type_", "fragment"),
    [
        (tensor(None, 8), "static shape"),
        (OpaqueType("tuple<tensor<8xf32>>"), "tuples"),
        (OpaqueType("tensor<*xf32>"), "ranked tensors"),
    ],
)
def test_types_that_cannot_be_sharded_are_refused(type_: object, fragment: str) -> None:
    """Dynamic shapes, unranked tensors and tuples are errors that name the op."""
    b = Builder(mesh=Mesh.of(a=2))
    with b.function("main", [T]) as (x,):
        b.op("toy.odd", [x], [type_])
        b.return_(x)
    with pytest.raises(UnsupportedError, match=fragment) as caught:
        propagate(b)
    assert caught.value.diagnostics[0].op == "toy.odd"


def test_every_op_with_such_a_type_is_listed() -> None:
    """One error names all ops, in program order, each as often as it has such results."""
    b = Builder()
    with b.function("main", [T]) as (x,):
        b.op("toy.odd", [x], [tensor(None), T, tensor(None)])
        b.op("toy.even", [x], [T])
        b.op("toy.strange", [x], [OpaqueType("tuple<tensor<8xf32>>")])
        b.return_(x)
    with pytest.raises(UnsupportedError) as caught:
        check_types(b.program)
    assert [item.op for item in caught.value.diagnostics] == ["toy.odd", "toy.odd", "toy.strange"]


def test_arguments_are_checked_where_it_is_asked_for() -> None:
    """The reference leaves an argument of a dynamic shape without a sharding; the check may refuse it."""
    b = Builder()
    with b.function("main", [tensor(None, 8)]) as (x,):
        b.return_(x)
    check_types(b.program)
    with pytest.raises(UnsupportedError, match="argument 0: ") as caught:
        check_types(b.program, arguments=True)
    assert caught.value.diagnostics[0].op == "func.func"
