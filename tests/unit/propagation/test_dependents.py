"""Steps that see a change of a slot, in the order in which they are put back."""

from __future__ import annotations

from shardy_py.ir.graph.builder import Builder
from shardy_py.ir.graph.program import Value
from shardy_py.ir.graph.types import tensor
from shardy_py.propagation import Problem, compile_program
from shardy_py.sharding import Mesh
from tests.unit.propagation.toy import toy_registry

T = tensor(8, 8)


def names_put_back(problem: Problem, value: Value) -> list[str]:
    """Return the names of the ops whose steps a change of a value puts back, in order."""
    slot = problem.slot_of[value.id]
    return [problem.step_ops[step].name for step in problem.dependents.of(slot)]


def test_the_producer_comes_first_then_the_newest_use() -> None:
    """Users follow from the last use to the first, each once, although one uses the value twice."""
    b = Builder(mesh=Mesh.of(a=2))
    with b.function("main", [T]) as (x,):
        y = b.op("toy.neg", [x], [T])
        first = b.op("toy.move", [y], [T])
        twice = b.op("toy.add", [y, y], [T])
        b.return_(first, twice)
    problem = compile_program(b.program, toy_registry())
    assert names_put_back(problem, y) == ["toy.neg", "toy.add", "toy.move"]
    assert names_put_back(problem, x) == ["toy.neg"]
    assert problem.dependents.not_requeued == {}


def test_a_use_by_a_loop_stands_for_its_edge() -> None:
    """The operand and the yielded value put the edge back, the edge the users of the argument and of the result."""
    b = Builder(mesh=Mesh.of(a=2))
    with b.function("main", [T]) as (x,):
        with b.region_op("toy.loop", [x], [T]) as loop, b.region(loop, [T]) as (carried,):
            inner = b.op("toy.neg", [carried], [T])
            b.emit("toy.yield", [inner])
        edge = b.op("sdy.data_flow_edge", [loop.result], [T])
        b.return_(b.op("toy.effect", [edge], [T]))
    problem = compile_program(b.program, toy_registry())
    assert names_put_back(problem, x) == ["sdy.data_flow_edge"]
    assert names_put_back(problem, inner) == ["toy.neg", "sdy.data_flow_edge"]
    assert set(names_put_back(problem, edge)) == {"toy.neg", "toy.effect", "sdy.data_flow_edge"}


def test_a_use_by_a_call_stands_for_the_uses_in_the_callee() -> None:
    """A value that is passed to a function puts the users of the argument back, a returned one those of the result."""
    b = Builder(mesh=Mesh.of(a=2))
    with b.function("callee", [T]) as (argument,):
        inner = b.op("toy.neg", [argument], [T])
        b.return_(inner)
    with b.function("main", [T]) as (x,):
        y = b.op("toy.move", [x], [T])
        result = b.call("callee", [y], [T])
        b.return_(b.op("toy.effect", [result], [T]))
    problem = compile_program(b.program, toy_registry())
    assert names_put_back(problem, y) == ["toy.move", "toy.neg"]
    assert names_put_back(problem, inner) == ["toy.neg", "toy.effect"]


def test_members_of_a_group_have_dependents_of_their_own() -> None:
    """The tie to another member carries the steps that its value puts back."""
    b = Builder(mesh=Mesh.of(a=2))
    with b.function("main", [T, T]) as (x, y):
        p, q = b.op("toy.neg", [x], [T]), b.op("toy.move", [y], [T])
        for value in (p, q):
            b.emit("sdy.sharding_group", [value], attributes={"group_id": 0})
        b.return_(p, b.op("toy.effect", [q], [T]))
    problem = compile_program(b.program, toy_registry())
    ((member, steps),) = problem.tied[problem.slot_of[p.id]].others()
    assert member == problem.slot_of[q.id]
    assert steps == problem.dependents.of(member)


def test_slots_of_a_group_share_its_members() -> None:
    """What is kept of a group grows as the group does."""
    b = Builder(mesh=Mesh.of(a=2))
    with b.function("main", [T, T, T]) as arguments:
        values = [b.op("toy.neg", [value], [T]) for value in arguments]
        for value in values:
            b.emit("sdy.sharding_group", [value], attributes={"group_id": 0})
        b.return_(*values)
    problem = compile_program(b.program, toy_registry())
    slots = [problem.slot_of[value.id] for value in values]
    assert len({id(problem.tied[slot].members) for slot in slots}) == 1
    assert [[slot for slot, _ in problem.tied[member_slot].others()] for member_slot in slots] == [
        [slot for slot in slots if slot != member_slot] for member_slot in slots
    ]
