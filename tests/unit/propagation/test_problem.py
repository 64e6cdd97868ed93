"""Problems: their parts agree with each other."""

from __future__ import annotations

import pytest

from shardy_py.ir.graph.builder import Builder
from shardy_py.ir.graph.types import tensor
from shardy_py.ir.interfaces.ops import DataFlowShardingTransformType, ShardableDataFlowOpInterface
from shardy_py.propagation import FLAT, Problem, compile_program, solve
from shardy_py.propagation.problem import StepGroup, edge_transform
from shardy_py.sharding import Mesh
from shardy_py.sharding.tensor import TensorSharding
from tests.unit.propagation.toy import toy_registry

T = tensor(8, 8)


@pytest.fixture
def problem() -> Problem:
    """Return a problem with a sharded argument, two ops, and a function result."""
    b = Builder(mesh=Mesh.of(a=2))
    with b.function("main", [T]) as (x,):
        b.shard(x, '[{"a"}, {?}]')
        y = b.op("toy.neg", [x], [T])
        b.return_(b.op("toy.add", [y, y], [T]))
    return compile_program(b.program, toy_registry())


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_a_step_sees_the_shardings_of_all_its_values(count: int) -> None:
    """Whatever the number of its operands, the last of them shards its result, and itself nothing else."""
    b = Builder(mesh=Mesh.of(a=2))
    with b.function("main", [T] * count) as arguments:
        b.shard(arguments[-1], '[{"a", ?}, {?}]')
        b.return_(b.op("toy.add", arguments, [T]))
    problem = compile_program(b.program, toy_registry())
    shardings = solve(problem, schedule=FLAT).shardings
    (slots,) = problem.step_slots
    assert len(slots) == count + 1
    assert {str(problem.table.values[shardings[slot]]) for slot in slots} == {'<@mesh, [{"a", ?}, {?}]>'}


def test_solving_leaves_a_problem_as_it_is(problem: Problem) -> None:
    """The shardings that it starts with, the groups of its steps and their number stay."""
    before = (list(problem.initial), list(problem.step_groups), problem.num_steps)
    assert solve(problem, schedule=FLAT).shardings != problem.initial
    assert (problem.initial, problem.step_groups, problem.num_steps) == before


def test_an_equal_group_has_one_index(problem: Problem) -> None:
    """A new group gets the next index, without steps."""
    group = problem.groups[0]
    assert (
        problem.intern_group(
            StepGroup(
                group.name,
                group.traits,
                group.rule,
                group.multi_use,
                group.fixed,
                group.is_elementwise,
                group.conservative,
            )
        )
        == 0
    )
    count = len(problem.groups)
    assert problem.intern_group(StepGroup("toy.new", frozenset(), -1, multi_use=False)) == count
    assert problem.group_steps[count] == []


def test_the_transform_of_an_edge_asks_its_op_both_ways() -> None:
    """Before propagation the sources see the target as the op says, and after it the target gets what that gives."""
    asked = []

    class Shifted(ShardableDataFlowOpInterface):
        def transform_target_sharding(self, op, target, sharding, transform):  # type: ignore[no-untyped-def]
            asked.append((op, target, transform))
            return TensorSharding.fully_open("mesh", 1)

    b = Builder()
    with b.function("main", [T]) as (x,):
        loop = b.emit("toy.loop", [x], [T])
        b.return_(x)
    before, after = edge_transform(Shifted(), loop, loop.result)
    for look, kind in ((before, "BEFORE"), (after, "AFTER")):
        assert look(TensorSharding.fully_open("mesh", 2)).rank == 1
        assert asked[-1] == (loop, loop.result, DataFlowShardingTransformType[f"{kind}_EDGE_PROPAGATION"])
