"""Partial results neither begin nor end where no op says so."""

import pytest

from shardy_py.errors import VerificationError
from shardy_py.ir import Builder, tensor
from shardy_py.sharding.mesh import Mesh
from shardy_py.transforms.finish.verify_unreduced_axes import VerifyUnreducedAxesPass
from tests.unit.transforms.finish.reshards.reshard_toy import run

PASS = VerifyUnreducedAxesPass()
MESH = Mesh.of(x=2, y=2)
T, V = tensor(8, 8), tensor(8)
WHOLE, PARTIAL, MAXIMA = "[{}, {}]", '[{}, {}], unreduced={"x"}', '[{}, {}], unreduced=max{"x"}'


def problems(b):
    """Return the op and message of every problem found."""
    try:
        run(PASS, b)
    except VerificationError as error:
        return [(item.op, item.message) for item in error.diagnostics]
    return []


def one_op(name, operand, result, *, combiner=None):
    """Return a builder with one op, which combines by another op in its region if one is given."""
    b = Builder(mesh=MESH)
    with b.function("main", [T]) as (x,):
        b.shard(x, operand)
        with b.region_op(name, [x], [T]) as op:
            if combiner:
                with b.region(op, [tensor(), tensor()]) as inner:
                    b.op("toy.yield", [b.op(combiner, inner, [tensor()])])
        b.shard(op.results[0], result)
        b.return_(op.results[0], shardings=[result])
    return b


@pytest.mark.parametrize(
    ("name", "operand", "result", "combiner"),
    [
        ("toy.neg", WHOLE, WHOLE, None),
        ("toy.neg", PARTIAL, PARTIAL, None),
        ("toy.neg", WHOLE, PARTIAL, None),
        ("toy.sum", WHOLE, PARTIAL, "toy.add"),
        ("toy.sum", WHOLE, MAXIMA, "toy.max"),
        ("toy.all_reduce", PARTIAL, WHOLE, "toy.add"),
        ("toy.all_reduce", MAXIMA, WHOLE, "toy.max"),
        ("sdy.reshard", PARTIAL, WHOLE, None),
        ("sdy.all_reduce", PARTIAL, WHOLE, None),
    ],
)
def test_what_says_so_may_begin_and_end_partial_results(name, operand, result, combiner):
    """Any op may make partial sums, reductions what they combine by; reshards and all-reduces may end them."""
    actual = problems(one_op(name, operand, result, combiner=combiner))
    # The registry at hand does not know the all-reduce of sdy: it is told by its name.
    assert actual == []


@pytest.mark.parametrize(
    ("name", "operand", "result", "combiner", "message"),
    [
        ("toy.neg", PARTIAL, WHOLE, None, 'the unreduced axis "x" is dropped'),
        ("toy.neg", WHOLE, MAXIMA, None, "new unreduced axes must combine by sum"),
        ("toy.neg", PARTIAL, MAXIMA, None, "unreduced axes combine otherwise after the op than before"),
        ("toy.sum", WHOLE, PARTIAL, "toy.max", "new unreduced axes must combine by max"),
        ("toy.sum", WHOLE, PARTIAL, "toy.neg2", 'the results have the new unreduced axis "x"'),
        ("toy.all_reduce", MAXIMA, WHOLE, "toy.add", "only axes that combine by sum are reduced here"),
        ("toy.all_reduce", WHOLE, PARTIAL, "toy.add", 'the results have the new unreduced axis "x"'),
    ],
)
def test_nothing_else_may(name, operand, result, combiner, message):
    """Whatever else begins, ends or changes partial results is reported with its op."""
    assert problems(one_op(name, operand, result, combiner=combiner)) == [(name, message)]


def test_an_all_reduce_needs_to_know_its_operand():
    """The collectives that reduce say nothing about an operand without a sharding."""
    b = Builder(mesh=MESH)
    with b.function("main", [T]) as (x,):
        b.op("sdy.all_reduce", [x], [T])
        b.return_()
    assert problems(b) == [("sdy.all_reduce", "its operand has no sharding")]


def test_calls_and_returns_keep_unreduced_axes():
    """Both sides of a call and of a return agree on unreduced axes, unless a reshard stands before."""
    b = Builder(mesh=MESH)
    with b.function("main", [T]) as (x,):
        b.shard(x, PARTIAL)
        y = b.call("f", [x], [T])
        b.shard(y, PARTIAL)
        moved = b.op("sdy.reshard", [y], [T])
        b.shard(moved, WHOLE)
        z = b.call("f", [moved], [T])
        b.return_(y, z, moved, shardings=[WHOLE, None, PARTIAL])
    with b.function("f", [T]) as (x,):
        b.return_(x, shardings=[WHOLE])
    assert problems(b) == [
        ("func.call", 'argument 0: only one side is unreduced along "x"'),
        ("func.call", 'result 0: only one side is unreduced along "x"'),
        ("func.return", 'value 0: only one side is unreduced along "x"'),
    ]


def test_regions_hand_over_what_the_results_are():
    """What the body of a loop yields is as partial as the result of the loop."""
    b = Builder(mesh=MESH)
    with b.function("main", [T]) as (x,):
        b.shard(x, PARTIAL)
        with b.region_op("toy.loop", [x], [T]) as op, b.region(op, [T]) as (inner,):
            y = b.op("toy.custom", [inner], [T])
            b.shard(y, PARTIAL)
            b.op("sdy.return", [b.op("toy.unknown", [y], [T])])
        b.shard(op.results[0], PARTIAL)
        b.return_(op.results[0], shardings=[PARTIAL])
    assert problems(b) == [
        ("toy.unknown", 'the unreduced axis "x" is dropped'),
        ("sdy.return", 'value 0: only one side is unreduced along "x"'),
    ]
