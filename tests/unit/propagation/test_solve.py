"""Solving a problem under schedules, user priorities and strategies."""

from __future__ import annotations

import pytest

from shardy_py.ir.graph.builder import Builder
from shardy_py.ir.graph.types import tensor
from shardy_py.propagation import (
    DEFAULT,
    FLAT,
    Direction,
    Entry,
    Level,
    Schedule,
    Selector,
    Strategy,
    compile_program,
    solve,
)
from shardy_py.propagation.trace import VisitLog
from shardy_py.sharding import Mesh
from tests.unit.propagation.toy import propagate, texts, toy_registry

T = tensor(8, 8)


def test_a_problem_can_be_solved_again_with_another_schedule() -> None:
    """Orderings that let different ops go first decide a conflict differently, from one compiled problem.

    `t` gets "a" along rows through the first sum or along columns through the second one: where the negation has gone
    before the move, along rows. By default both have gone, and the sums follow in program order.
    """
    b = Builder(mesh=Mesh.of(a=2))
    with b.function("main", [T, T, T]) as (x, y, w):
        b.shard(x, '[{"a", ?}, {?}]')
        b.shard(y, '[{?}, {"a", ?}]')
        z = b.op("toy.neg", [x], [T])
        s = b.op("toy.move", [y], [T])
        t = b.op("toy.effect", [w], [T])
        first = b.op("toy.add", [z, t], [T])
        second = b.op("toy.add", [t, s], [T])
        b.return_(first, second)
    problem = compile_program(b.program, toy_registry())

    def order(*names: str) -> Schedule:
        return Schedule(tuple(Level(name, (Entry(Selector(names=(name,))),)) for name in names))

    slot = problem.slot_values.index(t)
    rows, columns = '<@mesh, [{"a", ?}, {?}]>', '<@mesh, [{?}, {"a", ?}]>'
    move_first, negation_first = order("toy.move", "toy.add"), order("toy.neg", "toy.add")
    for schedule, expected in ((DEFAULT, rows), (FLAT, rows), (move_first, columns), (negation_first, rows)):
        solution = solve(problem, schedule=schedule)
        assert str(problem.table.values[solution.shardings[slot]]) == expected
        assert solve(problem, schedule=schedule).shardings == solution.shardings


def test_directions_of_a_level_are_added_to_those_before() -> None:
    """Forward at one level and backward at the next make both."""
    b = Builder(mesh=Mesh.of(a=2, b=2))
    with b.function("main", [T]) as (x,):
        b.shard(x, '[{"a", ?}, {?}]')
        y = b.op("toy.effect", [x], [T])
        b.return_(y, shardings=['[{?}, {"b", ?}]'])
    everything = Selector()
    forward_only = Schedule((Level("forward", (Entry(everything, Direction.FORWARD),)),))
    problem = compile_program(b.program, toy_registry())
    solution = solve(problem, schedule=forward_only)
    assert str(problem.table.values[solution.shardings[problem.slot_values.index(x)]]) == '<@mesh, [{"a", ?}, {?}]>'
    both = Schedule((*forward_only.levels, Level("backward", (Entry(everything, Direction.BACKWARD),))))
    solution = solve(problem, schedule=both)
    assert (
        str(problem.table.values[solution.shardings[problem.slot_values.index(x)]]) == '<@mesh, [{"a", ?}, {"b", ?}]>'
    )


def test_user_priorities_decide_before_sizes() -> None:
    """The operand with the more urgent priority wins although the other one is larger."""
    b = Builder(mesh=Mesh.of(a=2))
    with b.function("main", [tensor(8, 16), tensor(16, 32)]) as (x, y):
        b.shard(x, '[{"a"}p1, {?}]')
        b.shard(y, '[{?}, {"a"}p2]')
        z = b.op("toy.matmul", [x, y], [tensor(8, 32)])
        b.return_(z)
    propagate(b)
    assert texts(b, [x, y, z]) == ['[{"a"}, {?}]', '[{?}, {"a"}]', '[{"a", ?}, {?}]']


def conflict() -> Builder:
    """Return a program in which a sum and a product want one axis on different dimensions."""
    b = Builder(mesh=Mesh.of(a=2, b=2))
    with b.function("main", [tensor(8, 16), tensor(16, 8), T]) as (x, w, y):
        b.shard(x, '[{"a", ?}, {"b", ?}]')
        b.shard(y, '[{?}, {"a", ?}]')
        z = b.op("toy.matmul", [x, w], [T])
        b.return_(b.op("toy.add", [z, y], [T]))
    return b


@pytest.mark.parametrize("schedule", [DEFAULT, FLAT])
def test_a_log_changes_nothing(schedule: Schedule) -> None:
    """A level that visits only the steps that may have something to do ends as one that visits every step."""
    problem = compile_program(conflict().program, toy_registry())
    for strategies in ((Strategy.AGGRESSIVE,), (Strategy.BASIC, Strategy.AGGRESSIVE), (Strategy.BASIC,)):
        log = VisitLog()
        logged = solve(problem, schedule=schedule, strategies=strategies, log=log)
        assert logged.shardings == solve(problem, schedule=schedule, strategies=strategies).shardings
        first = [visit.step for visit in log.visits if visit.place == 0 and visit.step >= 0]
        assert set(first) == set(range(problem.num_steps))


def test_without_user_priorities_they_are_carried_along() -> None:
    """A priority that does not count stays on its dimension, and all dimensions propagate at once."""
    b = Builder(mesh=Mesh.of(a=2))
    with b.function("main", [T]) as (x,):
        b.shard(x, '[{"a"}p3, {?}]')
        y = b.op("toy.effect", [x], [T])
        b.return_(y)
    propagate(b, user_priorities=False)
    assert texts(b, [x, y]) == ['[{"a"}p3, {?}]', '[{"a", ?}, {?}]']


def test_each_priority_but_the_last_is_reported() -> None:
    """Between two priorities the shardings reached so far are handed out, most urgent first."""
    b = Builder(mesh=Mesh.of(a=2, b=2, c=2))
    with b.function("main", [T]) as (x,):
        b.shard(x, '[{"a"}p4, {"b"}p2]')
        y = b.op("toy.effect", [x], [T])
        b.return_(y)
    problem = compile_program(b.program, toy_registry())
    slot, seen = problem.slot_values.index(y), []
    values = problem.table.values
    solution = solve(
        problem, schedule=FLAT, after_priority=lambda priority, now: seen.append((priority, str(values[now[slot]])))
    )
    assert seen == [(0, "None"), (2, '<@mesh, [{?}, {"b", ?}]>')]
    assert str(values[solution.shardings[slot]]) == '<@mesh, [{"a", ?}, {"b", ?}]>'
