"""Dots lose the collectives around them that a collective matmul makes itself."""

import pytest

from shardy_py.ir import Builder, tensor, verify
from shardy_py.ir.interfaces.ops import Contraction
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.plugins import Dialect, Registry
from shardy_py.sharding import Mesh
from shardy_py.transforms.finish.canonicalize_collectives import (
    RemoveAllGatherReduceScatterForCMV1Pass,
)

T = tensor(8, 8)


@pytest.fixture(scope="module")
def context():
    """Return a context with a dot."""
    toy = Dialect("toy")
    toy.op("toy.dot", traits=[Contraction])
    return PassContext(Registry.of([toy]))


def run(context, *, gather, uses=1, dot_sharding="[{}, {}]", scatter=True):
    """Run the pass over a dot, and return the names of the ops and the sharding of the dot."""
    b = Builder(mesh=Mesh.of(x=2, y=2))
    with b.function("main", [T, T]) as (x, y):
        lhs = b.op("sdy.all_gather", [x], [T]) if gather else x
        dot = b.op("toy.dot", [lhs, y], [T])
        if dot_sharding:
            b.shard(dot, dot_sharding)
        result = b.op("sdy.reduce_scatter", [dot], [T]) if scatter else dot
        if scatter:
            b.shard(result, '[{"x"}, {}]')
        b.return_(result, *[lhs] * (uses - 1))
    RemoveAllGatherReduceScatterForCMV1Pass().run(b.program, context)
    verify(b.program)
    names = [op.name.partition(".")[2] for op in b.program.functions["main"].regions[0].block.ops]
    return names[:-1], str(b.program.sharding(dot))


def test_a_gather_before_a_dot_is_removed(context):
    """Then the reduce-scatter after it stays."""
    assert run(context, gather=True) == (["dot", "reduce_scatter"], "<@mesh, [{}, {}]>")


def test_a_gather_with_another_use_stays(context):
    """Then the reduce-scatter after the dot is removed."""
    assert run(context, gather=True, uses=2) == (["all_gather", "dot"], '<@mesh, [{"x"}, {}]>')


@pytest.mark.parametrize("sharding", ["[{}, {}]", None])
def test_a_dot_takes_over_the_sharding_of_its_reduce_scatter(context, sharding):
    """The reduce-scatter is gone; a dot without sharding is a replicated one."""
    assert run(context, gather=False, dot_sharding=sharding) == (["dot"], '<@mesh, [{"x"}, {}]>')


def test_a_dot_with_unreduced_axes_keeps_its_reduce_scatter(context):
    """Its sharding says that the reduction is still to come."""
    found, _ = run(context, gather=False, dot_sharding='<@mesh, [{}, {}], unreduced={"x"}>')
    assert found == ["dot", "reduce_scatter"]


def test_a_dot_alone_is_left_alone(context):
    """There is nothing to remove."""
    assert run(context, gather=False, scatter=False) == (["dot"], "<@mesh, [{}, {}]>")
