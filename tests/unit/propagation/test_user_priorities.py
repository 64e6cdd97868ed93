"""Rounds of user priorities."""

from __future__ import annotations

import pytest

from shardy_py.ir.graph.builder import Builder
from shardy_py.ir.graph.types import tensor
from shardy_py.propagation import compile_program
from shardy_py.propagation.problem import Problem
from shardy_py.propagation.solve import apply_round
from shardy_py.propagation.user_priorities import start_priorities, warn_of_ignored_priorities
from shardy_py.sharding import Mesh
from tests.unit.propagation.toy import toy_registry

T = tensor(8, 8)


def problem_of(*shardings: str) -> Problem:
    """Return the problem of a function with one argument per sharding."""
    b = Builder(mesh=Mesh.of(a=2, b=2, c=2))
    with b.function("main", [T] * len(shardings)) as values:
        for value, sharding in zip(values, shardings, strict=True):
            b.shard(value, sharding)
        b.return_(*values)
    return compile_program(b.program, toy_registry())


def texts_of(problem: Problem, current: list[int], count: int) -> list[str]:
    """Return the shardings of the first slots as text."""
    return [
        str(problem.table.values[current[slot]]).removeprefix("<@mesh, ").removesuffix(">") for slot in range(count)
    ]


@pytest.mark.parametrize(
    ("sharding", "initial"),
    [
        ('[{"a"}, {"b", ?}]', '[{"a"}, {"b", ?}]'),
        ('[{"a"}p0, {?}]', '[{"a"}, {?}]'),
        ('[{"a"}p1, {"b"}]', '[{}, {"b"}], replicated={"a"}'),
        ('[{"b", ?}p2, {"a"}p1], replicated={"c"}', '[{}, {}], replicated={"a", "b", "c"}'),
        ("[{?}p1, {?}]", "[{}, {?}]"),
    ],
)
def test_later_dimensions_start_empty_and_closed(sharding: str, initial: str) -> None:
    """Their axes are replicated until their priority comes, in the order of the mesh."""
    problem = problem_of(sharding)
    current = list(problem.initial)
    start_priorities(problem, current)
    assert texts_of(problem, current, 1) == [initial]


def test_rounds_come_by_priority() -> None:
    """Each round shows the dimensions of its priority in all tensors, on top of what was reached before."""
    problem = problem_of('[{"a"}p2, {"b"}p1]', '[{"c"}p2, {?}]', '[{"a"}, {?}]')
    current = list(problem.initial)
    rounds = start_priorities(problem, current)
    assert [item.priority for item in rounds] == [1, 2]
    assert [[slot for slot, _ in item.updates] for item in rounds] == [[0], [0, 1]]
    apply_round(problem, current, rounds[0])
    assert texts_of(problem, current, 2) == ['[{}, {"b"}], replicated={"a"}', '[{}, {?}], replicated={"c"}']
    apply_round(problem, current, rounds[1])
    assert texts_of(problem, current, 2) == ['[{"a"}, {"b"}]', '[{"c"}, {?}]']


def test_the_last_round_gives_the_shardings_without_priorities() -> None:
    """Where nothing propagates between the rounds, every tensor ends as it was given."""
    sharding = ('[{"a", ?}p3, {"b"}p1], replicated={"c"}', '[{"c"}p1, {"a"}p1]', '[{"a"}, {"b"}p7]')
    problem = problem_of(*sharding)
    current = list(problem.initial)
    for item in start_priorities(problem, current):
        apply_round(problem, current, item)
    plain = ('[{"a", ?}, {"b"}], replicated={"c"}', '[{"c"}, {"a"}]', '[{"a"}, {"b"}]')
    assert texts_of(problem, current, 3) == list(plain)


@pytest.mark.parametrize(
    ("shardings", "told"),
    [
        (['[{"a"}, {?}]', '[{"a"}p0, {?}]'], None),
        (['[{"a"}p0, {?}]', '[{"b"}, {?}p2]', '[{"a"}p1, {?}]'], 'argument 1: the user priority p2 in [{"b"}, {?}p2]'),
    ],
)
def test_one_warning_where_priorities_do_not_count(shardings: list[str], told: str | None) -> None:
    """It is about the first sharding with a priority above 0."""
    b = Builder(mesh=Mesh.of(a=2, b=2))
    with b.function("main", [T] * len(shardings)) as values:
        for value, sharding in zip(values, shardings, strict=True):
            b.shard(value, sharding)
        b.return_(*values)
    warnings = warn_of_ignored_priorities(b.program, "basic")
    assert [item.message for item in warnings] == (
        [] if told is None else [f"{told} has no effect with the strategy basic"]
    )
