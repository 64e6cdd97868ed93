"""Classes of steps under a schedule, and their directions."""

from __future__ import annotations

import pytest

from shardy_py.ir.graph.builder import Builder
from shardy_py.ir.graph.types import tensor
from shardy_py.propagation import DEFAULT, FLAT, Direction, Entry, Level, Schedule, Selector, compile_program
from shardy_py.propagation.problem import NO_RULE, Problem
from shardy_py.propagation.step_classes import StepClasses
from shardy_py.sharding import Mesh
from tests.unit.propagation.toy import toy_registry

T = tensor(8, 8)
BY_FUNCTION = Schedule((Level("shared", (Entry(Selector(predicate=lambda op: op.operands[0].has_one_use)),)),))


def chain() -> Problem:
    """Return a problem with two equal sums, a product and a barrier."""
    b = Builder(mesh=Mesh.of(a=2))
    with b.function("main", [T, T, T, T]) as (x, y, z, w):
        first = b.op("toy.add", [x, y], [T])
        second = b.op("toy.add", [z, w], [T])
        product = b.op("toy.matmul", [first, second], [T])
        b.return_(b.op("sdy.propagation_barrier", [product], [T], allowed_direction=1))
    return compile_program(b.program, toy_registry())


def step_named(problem: Problem, name: str) -> int:
    """Return the first step of an op of some name."""
    return next(step for step, op in enumerate(problem.step_ops) if op.name == name)


@pytest.mark.parametrize("schedule", [None, FLAT, DEFAULT, BY_FUNCTION])
def test_classes_divide_the_steps(schedule: Schedule | None) -> None:
    """Each step is a member of its class and of no other, and a class has one step group."""
    problem = chain()
    classes = StepClasses(problem, schedule)
    for step in range(problem.num_steps):
        assert [number for number, members in enumerate(classes.members) if step in members] == [classes.of_step[step]]
        assert classes.groups[classes.of_step[step]] == problem.step_groups[step]
    assert sorted(number for of_profile in classes.by_profile for number in of_profile) == list(
        range(len(classes.groups))
    )
    assert all(len(vectors) == classes.num_levels for vectors in classes.vectors)


def test_equal_ops_share_a_class() -> None:
    """The name, the traits, the rule and the uses make a class, unless the schedule looks at every op."""
    problem = chain()
    first, second = [step for step, op in enumerate(problem.step_ops) if op.name == "toy.add"]
    classes = StepClasses(problem, DEFAULT)
    assert classes.of_step[first] == classes.of_step[second]
    apart = Schedule(
        (Level("one", (Entry(Selector(predicate=lambda op: op is problem.step_ops[first])),)), *FLAT.levels)
    )
    classes = StepClasses(problem, apart)
    assert classes.of_step[first] != classes.of_step[second]
    group = problem.step_groups[first]
    assert classes.directions_of(first, group, 0) == (3, 3)
    assert classes.directions_of(second, group, 0) == (0, 0)
    assert classes.directions_of(second, group, 1) == (3, 3)


def test_directions_follow_the_kinds_of_factors() -> None:
    """A level about pass-through factors gives the reduced one of a product no direction; the last one does."""
    problem = chain()
    step = step_named(problem, "toy.matmul")
    rule = problem.step_rules[step]
    assert rule is not None
    classes = StepClasses(problem, DEFAULT)
    (reduced,) = rule.reduction_factors
    by_level = [classes.directions_of(step, problem.step_groups[step], level) for level in range(classes.num_levels)]
    assert [directions[reduced] for directions in by_level] == [0, 0, 0, 3, 3]
    assert [{direction for factor, direction in enumerate(actual) if factor != reduced} for actual in by_level] == [
        {0},
        {0},
        {3},
        {3},
        {3},
    ]


@pytest.mark.parametrize("schedule", [None, DEFAULT, BY_FUNCTION])
def test_a_barrier_has_its_own_direction_at_every_level(schedule: Schedule | None) -> None:
    """No schedule changes the direction of a barrier."""
    problem = chain()
    step = step_named(problem, "sdy.propagation_barrier")
    classes = StepClasses(problem, schedule)
    for level in range(classes.num_levels):
        assert set(classes.directions_of(step, problem.step_groups[step], level)) == {int(Direction.FORWARD)}


def test_a_step_moves_to_the_class_of_another_group() -> None:
    """The classes of the problem stay as they are, so that it can be solved again."""
    problem = chain()
    first, second = [step for step, op in enumerate(problem.step_ops) if op.name == "toy.add"]
    before = list(problem.step_groups)
    classes = StepClasses(problem, DEFAULT)
    target = problem.step_groups[step_named(problem, "toy.matmul")]
    classes.move(first, target)
    classes.regroup([True] * problem.num_steps)
    assert classes.groups[classes.of_step[first]] == target
    assert first in classes.members[classes.of_step[first]]
    assert second not in classes.members[classes.of_step[first]]
    assert problem.step_groups == before
    assert all(group.rule != NO_RULE for group in problem.groups)
