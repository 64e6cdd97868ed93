"""Shardings with which the slots of a problem start."""

from __future__ import annotations

import pytest

from shardy_py.errors import UnsupportedError
from shardy_py.ir.graph.builder import Builder
from shardy_py.ir.graph.types import tensor
from shardy_py.propagation import compile_program
from shardy_py.propagation.initial_shardings import sibling_results
from shardy_py.propagation.slots import assign_slots
from shardy_py.sharding import Mesh
from tests.unit.propagation.toy import toy_registry

T = tensor(8, 8)


def test_initial_shardings_are_those_of_the_table() -> None:
    """Every slot starts with the sharding of its value; the entry behind the last one is of values without a slot."""
    b = Builder(mesh=Mesh.of(a=2))
    with b.function("main", [T]) as (x,):
        b.shard(x, '[{"a"}, {?}]')
        b.return_(b.op("toy.neg", [x], [T]))
    problem = compile_program(b.program, toy_registry())
    found = [problem.table.values[id_] for id_ in problem.initial]
    assert found == [*(b.program.sharding(value) for value in problem.slot_values), None]


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
    one, two, three = map(slots.get, (first, second, third))
    siblings = sibling_results(slots)
    assert siblings == dict.fromkeys((one, two, three), ((one, 2), (two, 1), (three, 2)))
    assert siblings[one] is siblings[two] is siblings[three]
