"""Whole small programs through the engine, with a toy dialect."""

from __future__ import annotations

import pytest

from shardy_py.errors import UnsupportedError, VerificationError
from shardy_py.ir.graph.builder import Builder
from shardy_py.ir.graph.types import tensor
from shardy_py.sharding import Mesh
from tests.unit.propagation.toy import propagate, texts

T = tensor(8, 8)


def test_axes_flow_forward_and_backward_through_a_matmul() -> None:
    """An axis on a row of the left operand reaches the result, and one on the result's columns the right operand."""
    b = Builder(mesh=Mesh.of(a=2, b=2))
    with b.function("main", [T, T]) as (x, y):
        b.shard(x, '[{"a", ?}, {?}]')
        z = b.op("toy.matmul", [x, y], [T])
        b.return_(z, shardings=['[{?}, {"b", ?}]'])
    propagate(b)
    assert texts(b, [x, y, z]) == ['[{"a", ?}, {?}]', '[{?}, {"b", ?}]', '[{"a", ?}, {"b", ?}]']


def test_a_closed_dimension_takes_nothing() -> None:
    """A closed dimension stays as it is and stops the axis for the tensors behind it."""
    b = Builder(mesh=Mesh.of(a=2))
    with b.function("main", [T]) as (x,):
        b.shard(x, '[{"a"}, {}]')
        y = b.op("toy.neg", [x], [T])
        b.shard(y, "[{}, {?}]")
        z = b.op("toy.neg", [y], [T])
        b.return_(z)
    propagate(b)
    assert texts(b, [x, y, z]) == ['[{"a"}, {}]', "[{}, {?}]", None]


def test_basic_leaves_a_conflict_and_aggressive_resolves_it_for_the_larger_tensor() -> None:
    """Both operands of a matmul want the same axis on different factors: the larger one wins."""
    results = {}
    for strategy in ("basic", "aggressive"):
        b = Builder(mesh=Mesh.of(a=2))
        with b.function("main", [tensor(8, 16), tensor(16, 32)]) as (x, y):
            b.shard(x, '[{"a"}, {?}]')
            b.shard(y, '[{?}, {"a"}]')
            z = b.op("toy.matmul", [x, y], [tensor(8, 32)])
            b.return_(z)
        propagate(b, schedule=None, strategy=strategy)
        results[strategy] = texts(b, [z])[0]
    assert results == {"basic": None, "aggressive": '[{?}, {"a", ?}]'}


def test_a_merged_dimension_is_split_into_sub_axes_and_merged_again() -> None:
    """An axis of 8 over factors 4 and 2 is divided between them, and comes back whole."""
    b = Builder(mesh=Mesh.of(a=8))
    with b.function("main", [tensor(4, 2)]) as (x,):
        y = b.op("toy.merge", [x], [tensor(8)])
        b.shard(y, '[{"a"}]')
        z = b.op("toy.merge", [x], [tensor(8)])
        b.return_(y, z)
    propagate(b)
    assert texts(b, [x, z]) == ['[{"a":(1)4, ?}, {"a":(4)2, ?}]', '[{"a", ?}]']


def test_conservative_propagation_introduces_no_sub_axes() -> None:
    """The same program without sub-axes leaves the operand as it was."""
    b = Builder(mesh=Mesh.of(a=8))
    with b.function("main", [tensor(4, 2)]) as (x,):
        y = b.op("toy.merge", [x], [tensor(8)])
        b.shard(y, '[{"a"}]')
        b.return_(y)
    propagate(b, conservative=True)
    assert texts(b, [x]) == [None]


@pytest.mark.parametrize(
    ("direction", "expected"),
    [
        (0, [None, '[{"a", ?}, {?}]', None]),
        (1, [None, '[{"a", ?}, {?}]', '[{"a", ?}, {?}]']),
        (2, ['[{"a", ?}, {?}]', '[{"a", ?}, {?}]', None]),
        (3, ['[{"a", ?}, {?}]', '[{"a", ?}, {?}]', '[{"a", ?}, {?}]']),
    ],
)
def test_a_barrier_lets_through_its_direction_only(direction: int, expected: list[str | None]) -> None:
    """A barrier before and one after the sharded value, both with the same allowed direction."""
    b = Builder(mesh=Mesh.of(a=2))
    with b.function("main", [T]) as (x,):
        before = b.op("sdy.propagation_barrier", [x], [T], allowed_direction=direction)
        middle = b.op("toy.effect", [before], [T])
        b.shard(middle, '[{"a", ?}, {?}]')
        after = b.op("sdy.propagation_barrier", [middle], [T], allowed_direction=direction)
        b.return_(after)
    propagate(b)
    assert texts(b, [x, middle, after]) == expected


def test_an_edge_joins_what_flows_into_a_loop_and_out_of_it() -> None:
    """A sharding of the initial value reaches the argument in the body and the result, through the edge."""
    b = Builder(mesh=Mesh.of(a=2))
    with b.function("main", [T]) as (x,):
        b.shard(x, '[{"a", ?}, {?}]')
        with b.region_op("toy.loop", [x], [T]) as loop, b.region(loop, [T]) as (carried,):
            inner = b.op("toy.neg", [carried], [T])
            b.emit("toy.yield", [inner])
        edge = b.op("sdy.data_flow_edge", [loop.result], [T])
        b.return_(edge)
    propagate(b)
    assert texts(b, [inner, edge, loop.result, carried]) == ['[{"a", ?}, {?}]'] * 2 + [None, None]


def test_without_an_edge_a_loop_carries_nothing() -> None:
    """The result and the body share a slot even without an edge, but nothing ties them to the initial value."""
    b = Builder(mesh=Mesh.of(a=2))
    with b.function("main", [T]) as (x,):
        b.shard(x, '[{"a", ?}, {?}]')
        with b.region_op("toy.loop", [x], [T]) as loop, b.region(loop, [T]) as (carried,):
            inner = b.op("toy.neg", [carried], [T])
            b.emit("toy.yield", [inner])
        b.return_(loop.result)
    propagate(b)
    assert texts(b, [loop.result, inner]) == [None, None]


def test_unused_ops_are_erased_and_those_with_effects_stay() -> None:
    """A chain of pure ops without uses goes; an op that may have effects stays."""
    b = Builder(mesh=Mesh.of(a=2))
    with b.function("main", [T]) as (x,):
        unused = b.op("toy.neg", [x], [T])
        b.op("toy.add", [unused, unused], [T])
        b.op("toy.effect", [x], [T])
        b.return_(x)
    propagate(b)
    assert [op.name for op in b.program.walk()][2:] == ["toy.effect", "func.return"]


def test_the_other_results_of_a_sharded_op_become_open() -> None:
    """One attribute holds the shardings of all results, so the others cannot stay without."""
    b = Builder(mesh=Mesh.of(a=2))
    with b.function("main", [tensor(8)]) as (x,):
        b.shard(x, '[{"a", ?}]')
        first, second = b.op("toy.two", [x], [tensor(8), tensor(8)])
        b.return_(first, second)
    propagate(b)
    assert texts(b, [first, second]) == ['[{"a", ?}]', "[{?}]"]


def test_several_functions_need_a_main() -> None:
    """Without a function named main the entry is unknown."""
    b = Builder(mesh=Mesh.of(a=2))
    for name in ("f", "g"):
        with b.function(name, [T]) as (x,):
            b.return_(x)
    with pytest.raises(UnsupportedError, match="none is named main"):
        propagate(b)


def test_an_unknown_mesh_is_an_error_with_a_hint() -> None:
    """A sharding that names a mesh the program does not have is refused."""
    b = Builder(mesh=Mesh.of(a=2))
    with b.function("main", [T]) as (x,):
        b.program.shardings[x.id] = b.sharding('<@other, [{"a"}, {}]>')
        b.return_(x)
    with pytest.raises(VerificationError, match="other"):
        propagate(b)


def test_an_empty_program_is_left_as_it_is() -> None:
    """A module without functions has nothing to propagate."""
    b = Builder(mesh=Mesh.of(a=2))
    propagate(b)
    assert [op.name for op in b.program.walk()] == ["sdy.mesh"]


def test_an_unused_op_inside_an_unused_op_goes_first() -> None:
    """The body of an op without uses may hold one: nothing propagates from it once it is met."""
    b = Builder(mesh=Mesh.of(a=2))
    with b.function("main", [T]) as (x,):
        with b.region_op("toy.loop", [x], [T]) as loop, b.region(loop, [T]) as (carried,):
            unused = b.op("toy.neg", [x], [T])
            b.shard(unused, '[{"a", ?}, {?}]')
            b.emit("toy.yield", [carried])
        b.op("toy.neg", [loop.result], [T])
        b.return_(x)
    propagate(b)
    assert texts(b, [x]) == [None]
    assert [op.name for op in b.program.walk()][2:] == ["func.return"]
