"""What a solve reports to its observer."""

from __future__ import annotations

import pytest

from shardy_py.ir.graph.builder import Builder
from shardy_py.ir.graph.types import tensor
from shardy_py.propagation import FLAT, compile_program, propagate_program, solve
from shardy_py.propagation.steps.factors import Strategy
from shardy_py.propagation.trace import Update, VisitLog
from shardy_py.sharding import AxisRef, Mesh
from tests.unit.propagation.toy import texts, toy_registry

T = tensor(8, 8)


def traced(builder: Builder) -> list[Update]:
    """Propagate what was built so far and return the updates."""
    updates: list[Update] = []
    propagate_program(builder.program, toy_registry(), observer=updates.append)
    return updates


def chain(sharding: str) -> tuple[Builder, list[Update]]:
    """Return a program of two ops behind a sharded argument, and its updates."""
    b = Builder(mesh=Mesh.of(a=2, b=2))
    with b.function("main", [T]) as (x,):
        b.shard(x, sharding)
        y = b.op("toy.neg", [x], [T])
        z = b.op("toy.add", [y, y], [T])
        b.return_(z)
    return b, traced(b)


def test_every_accepted_update_is_reported_in_order() -> None:
    """Op by op, then the function result; what changed nothing is not reported."""
    _, updates = chain('[{"a"}, {?}]')
    assert [update.op.name for update in updates] == ["toy.neg", "toy.add", "func.func"]
    assert [update.is_function_result for update in updates] == [False, False, True]


def test_the_changes_lead_from_the_start_to_the_result() -> None:
    """Applied to the first shardings, the new shardings of all changes give those of the program."""
    b, updates = chain('[{"a"}p1, {"b"}]')
    last = {change.value.id: change.new for update in updates for change in update.changes}
    assert last
    assert all(b.program.shardings[value] == sharding for value, sharding in last.items())
    for update in updates:
        assert all(change.old != change.new for change in update.changes)


def test_the_user_priority_and_the_strategy_are_noted() -> None:
    """An axis of priority 1 moves in the round of that priority."""
    _, updates = chain('[{"a"}p1, {"b"}]')
    assert [update.user_priority for update in updates] == [0, 0, 0, 1, 1, 1]
    assert {update.strategy for update in updates} == {Strategy.AGGRESSIVE}


def test_projections_are_those_before_and_after() -> None:
    """The factor of the rows has no axis on the result before, and the operand's axis after."""
    _, updates = chain('[{"a"}, {?}]')
    old, new = updates[0].projections()
    assert [tensor_.factors[0].axes for tensor_ in old.tensors] == [(AxisRef("a"),), ()]
    assert [tensor_.factors[0].axes for tensor_ in new.tensors] == [(AxisRef("a"),), (AxisRef("a"),)]
    assert old.results[0] != new.results[0]


def test_members_of_a_sharding_group_change_with_the_one_that_changed() -> None:
    """The other member is listed behind it, marked as tied."""
    b = Builder(mesh=Mesh.of(a=2))
    with b.function("main", [T, T]) as (x, y):
        b.shard(x, '[{"a"}, {?}]')
        z = b.op("toy.neg", [x], [T])
        b.emit("sdy.sharding_group", [z], attributes={"group_id": 0})
        b.emit("sdy.sharding_group", [y], attributes={"group_id": 0})
        b.return_(z)
    update = traced(b)[0]
    assert [(change.value, change.is_tied) for change in update.changes] == [(z, False), (y, True)]


def test_an_edge_reports_its_own_result_as_the_target() -> None:
    """The sources of a loop's edge come first, then the edge, which carries the sharding of the targets."""
    b = Builder(mesh=Mesh.of(a=2))
    with b.function("main", [T]) as (x,):
        b.shard(x, '[{"a"}, {?}]')
        with b.region_op("toy.loop", [x], [T]) as loop, b.region(loop, [T]) as (y,):
            inner = b.op("toy.neg", [y], [T])
            b.emit("toy.yield", [inner])
        edge = b.op("sdy.data_flow_edge", [loop.results[0]], [T])
        b.return_(edge)
    update = traced(b)[0]
    assert update.op is edge.defining_op
    assert list(update.values) == [x, inner, edge]


def test_observing_changes_nothing() -> None:
    """With and without an observer the shardings are the same."""
    results = []
    for observed in (True, False):
        b = Builder(mesh=Mesh.of(a=2, b=2))
        with b.function("main", [T, T]) as (x, y):
            b.shard(x, '[{"a"}, {?}]')
            b.shard(y, '[{"a"}, {"b"}]')
            z = b.op("toy.matmul", [x, y], [T])
            b.return_(z)
        problem = compile_program(b.program, toy_registry())
        seen: list[Update] = []
        solution = solve(problem, schedule=FLAT, observer=seen.append if observed else None)
        results.append(solution.shardings)
        assert bool(seen) is observed
    assert results[0] == results[1]


@pytest.mark.parametrize(("sharding", "expected"), [('[{"a"}, {?}]', []), ('[{"a"}p2, {"b"}p1]', [0, 1])])
def test_a_snapshot_is_taken_after_every_priority_but_the_last(sharding: str, expected: list[int]) -> None:
    """The program shows the shardings reached so far, and goes on from where it was."""
    b = Builder(mesh=Mesh.of(a=2, b=2))
    with b.function("main", [T]) as (x,):
        b.shard(x, sharding)
        y = b.op("toy.neg", [x], [T])
        b.return_(y)
    seen: list[int] = []
    shown: list[str | None] = []

    def snapshot(priority: int) -> None:
        seen.append(priority)
        shown.extend(texts(b, [y]))

    propagate_program(b.program, toy_registry(), snapshot=snapshot)
    assert seen == expected
    assert shown == [None, '[{?}, {"b", ?}]'][: len(expected)]
    assert texts(b, [y]) == ['[{"a", ?}, {?}]' if not expected else '[{"a", ?}, {"b", ?}]']


def test_the_log_has_every_visit() -> None:
    """Those that changed something are the accepted updates; the others saw what they could not change."""
    b = Builder(mesh=Mesh.of(a=2, b=2))
    with b.function("main", [T]) as (x,):
        b.shard(x, '[{"a"}, {?}]')
        b.return_(b.op("toy.neg", [x], [T]))
    log, updates = VisitLog(), []
    propagate_program(b.program, toy_registry(), observer=updates.append, log=log)
    accepted = [visit for visit in log.visits if visit.outcome]
    assert len(accepted) == len(updates) == 2
    assert len(log.visits) > 2
    assert all(visit.seen for visit in log.visits)
    assert [log.places[visit.place].level for visit in accepted] == [update.level for update in updates]
