"""Shardings with which the slots of a problem and the members of a sharding group start."""

from __future__ import annotations

import pytest

from shardy_py.errors import Diagnostic, UnsupportedError
from shardy_py.ir.graph.builder import Builder
from shardy_py.ir.graph.program import Value
from shardy_py.ir.graph.types import tensor
from shardy_py.propagation import compile_program, propagate_program
from shardy_py.propagation.initial_shardings import sibling_results, sync_sharding_groups
from shardy_py.propagation.slots import assign_slots
from shardy_py.sharding import Mesh
from tests.unit.propagation.toy import propagate, texts, toy_registry

T = tensor(8, 8)


def test_initial_shardings_are_those_of_the_table() -> None:
    """Every slot starts with the sharding of its value; the entry behind the last one is of values without a slot."""
    b = Builder(mesh=Mesh.of(a=2))
    with b.function("main", [T]) as (x,):
        b.shard(x, '[{"a"}, {?}]')
        b.return_(b.op("toy.neg", [x], [T]))
    problem = compile_program(b.program, toy_registry())
    actual = [problem.table.values[id_] for id_ in problem.initial]
    assert actual == [*(b.program.sharding(value) for value in problem.slot_values), None]


def test_a_sharding_has_the_rank_of_its_value() -> None:
    """A sharding of another rank is an error that names both."""
    b = Builder(mesh=Mesh.of(a=2))
    with b.function("main", [T]) as (x,):
        b.program.shardings[x.id] = b.sharding('<@mesh, [{"a"}]>')
        b.return_(x)
    with pytest.raises(UnsupportedError, match="has rank 1") as caught:
        compile_program(b.program, toy_registry())
    assert caught.value.diagnostics[0].code == "rank-mismatch"


def test_one_sharded_result_opens_the_others_at_the_start() -> None:
    """One attribute holds the shardings of all results of an op."""
    b = Builder(mesh=Mesh.of(a=2))
    with b.function("main", [tensor(8)]) as (x,):
        first, second = b.op("toy.two", [x], [tensor(8), tensor(8)])
        b.shard(second, '[{"a"}]')
        b.return_(first, second)
    problem = compile_program(b.program, toy_registry())
    initial = problem.initial[problem.slot_of[first.id]]
    assert str(problem.table.values[initial]) == "<@mesh, [{?}]>"


def test_siblings_are_all_results_of_an_op() -> None:
    """The results of an op with several share the slots and ranks of all of them; a single result has none."""
    b = Builder()
    with b.function("main", [T]) as (x,):
        first, second, third = b.op("toy.three", [x], [T, tensor(8), T])
        b.return_(b.op("toy.neg", [x], [T]))
    slots = assign_slots(b.program, toy_registry())
    first_slot, two, three = map(slots.get, (first, second, third))
    siblings = sibling_results(slots)
    assert siblings == dict.fromkeys((first_slot, two, three), ((first_slot, 2), (two, 1), (three, 2)))
    assert siblings[first_slot] is siblings[two] is siblings[three]


def group(b: Builder, *values: Value, number: int = 0) -> None:
    """Put values into a sharding group."""
    for value in values:
        b.emit("sdy.sharding_group", [value], attributes={"group_id": number})


@pytest.mark.parametrize(
    ("shardings", "expected"),
    [
        ((None, None, None), None),
        ((None, '[{"a"}, {?}]', None), '[{"a"}, {?}]'),
        (("[{?}, {?}]", None, '[{"a", ?}, {?}]'), '[{"a", ?}, {?}]'),
        (("[{}, {}]", None, None), "[{}, {}]"),
        (('[{"a"}, {?}]', '[{"a"}, {?}]', None), '[{"a"}, {?}]'),
    ],
)
def test_members_start_with_the_sharding_of_one(shardings: tuple[str | None, ...], expected: str | None) -> None:
    """Fully open members, and those without a sharding, take that of the others; another group is not concerned."""
    b = Builder(mesh=Mesh.of(a=2))
    with b.function("main", [T] * 4) as values:
        for value, sharding in zip(values, shardings, strict=False):
            if sharding is not None:
                b.shard(value, sharding)
        group(b, *values[:3])
        group(b, values[3], number=1)
        b.return_(*values)
    warnings: list[Diagnostic] = []
    sync_sharding_groups(b.program, toy_registry(), warnings)
    assert texts(b, values) == [expected] * 3 + [None]
    assert warnings == []


def test_constraints_of_a_conflict_are_open_and_used() -> None:
    """Each gets the first sharding found, opened, and all users of the member use the constraint."""
    b = Builder(mesh=Mesh.of(a=2, b=2))
    with b.function("main", [T, T]) as (x, y):
        b.shard(x, '[{"a"}, {}]')
        b.shard(y, '[{"b"}, {}]')
        group(b, x, y)
        z = b.op("toy.add", [x, y], [T])
        b.return_(z)
    sync_sharding_groups(b.program, toy_registry(), [])
    constraints = list(z.owning_op.operands)
    assert [value.owning_op.name for value in constraints] == ["sdy.sharding_constraint"] * 2
    assert texts(b, [x, y, *constraints]) == ['[{"a"}, {}]', '[{"b"}, {}]', "[{?}, {?}]", "[{?}, {?}]"]


def test_members_of_a_group_change_together() -> None:
    """An axis that reaches one member of a sharding group reaches all, and goes on from there."""
    b = Builder(mesh=Mesh.of(a=2))
    with b.function("main", [T, T]) as (x, y):
        b.shard(x, '[{"a", ?}, {?}]')
        p = b.op("toy.effect", [x], [T])
        q = b.op("toy.effect", [y], [T])
        b.emit("sdy.sharding_group", [p], attributes={"group_id": 0})
        b.emit("sdy.sharding_group", [q], attributes={"group_id": 0})
        b.return_(p, q)
    propagate(b)
    assert texts(b, [p, q, y]) == ['[{"a", ?}, {?}]'] * 3


def test_a_conflict_in_a_group_becomes_open_constraints() -> None:
    """Members with different shardings get one constraint each, and a warning is given."""
    b = Builder(mesh=Mesh.of(a=2, b=2))
    with b.function("main", [T, T]) as (x, y):
        b.shard(x, '[{"a"}, {}]')
        b.shard(y, '[{"b"}, {}]')
        b.emit("sdy.sharding_group", [x], attributes={"group_id": 0})
        b.emit("sdy.sharding_group", [y], attributes={"group_id": 0})
        b.return_(x, y)
    warnings = []
    propagate_program(b.program, toy_registry(), warnings=warnings)
    constraints = [op for op in b.program.walk() if op.name == "sdy.sharding_constraint"]
    assert {op.operands[0] for op in constraints} == {x, y}
    assert [warning.code for warning in warnings] == ["sharding-group-conflict"]


@pytest.mark.parametrize("sharded", ["initial", "other member"])
def test_a_loop_argument_follows_its_group_but_does_not_lead_it(sharded: str) -> None:
    """The argument shares its slot with the result of the loop; the group knows only the argument."""
    b = Builder(mesh=Mesh.of(a=2))
    with b.function("main", [T, T]) as (x, y):
        member = b.op("toy.effect", [y], [T])
        with b.region_op("toy.loop", [x], [T]) as loop, b.region(loop, [T]) as (carried,):
            b.emit("sdy.sharding_group", [carried], attributes={"group_id": 0})
            b.emit("toy.yield", [carried])
        edge = b.op("sdy.data_flow_edge", [loop.result], [T])
        b.emit("sdy.sharding_group", [member], attributes={"group_id": 0})
        b.return_(edge, member)
        b.shard(x if sharded == "initial" else y, '[{"a", ?}, {?}]')
    propagate(b)
    expected = None if sharded == "initial" else '[{"a", ?}, {?}]'
    assert texts(b, [member]) == [expected]
    assert texts(b, [edge]) == ['[{"a", ?}, {?}]']
