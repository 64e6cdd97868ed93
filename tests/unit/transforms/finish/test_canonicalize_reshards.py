"""Chains of reshards become one, equal constants become one, what nobody uses goes."""

import pytest

from shardy_py.ir import Builder, RawAttribute, tensor
from shardy_py.sharding.mesh import Mesh
from shardy_py.transforms.finish.canonicalize_reshards import CanonicalizeReshardsPass, KeepReshardsPass
from tests.unit.transforms.finish.reshards.reshard_toy import run

PASS = CanonicalizeReshardsPass()
MESH = Mesh.of(x=2, y=2)
T = tensor(8, 8)


def reshard(b, value, sharding, **attributes):
    """Add a reshard."""
    result = b.op("sdy.reshard", [value], [T], attributes, sharding=b.sharding(sharding))
    b.shard(result, sharding)
    return result


def test_a_chain_of_reshards_is_one_reshard():
    """Only the last sharding counts; attributes of other dialects are gone with the ops that had them."""
    b = Builder(mesh=MESH)
    with b.function("main", [T]) as (x,):
        for sharding in ('[{"x"}, {}]', '[{}, {"x"}]', '[{"y"}, {}]'):
            x = reshard(b, x, sharding, **{"toy.note": "kept"})
        b.return_(x)
    assert run(PASS, b) == ['%0 = reshard %arg0 [{"y"}, {}]', "func.return %0"]
    assert all("toy.note" not in op.attributes for op in b.program.walk())


def test_chains_stay_where_the_partitioner_does_not_merge_them():
    """What nobody uses goes all the same."""
    b = Builder(mesh=MESH)
    with b.function("main", [T]) as (x,):
        reshard(b, x, '[{}, {"y"}]')
        for sharding in ('[{"x"}, {}]', "[{}, {}]"):
            x = reshard(b, x, sharding)
        b.return_(x)
    assert run(KeepReshardsPass(), b) == [
        '%0 = reshard %arg0 [{"x"}, {}]',
        "%1 = reshard %0 [{}, {}]",
        "func.return %1",
    ]


def test_a_reshard_with_another_use_stays():
    """A chain is only merged across values that nothing else uses."""
    b = Builder(mesh=MESH)
    with b.function("main", [T]) as (x,):
        first = reshard(b, x, '[{"x"}, {}]')
        b.return_(first, reshard(b, first, '[{"y"}, {}]'))
    assert len(run(PASS, b)) == 3


def test_a_use_by_what_nobody_uses_does_not_count():
    """Unused ops go first, so that they keep no chain apart."""
    b = Builder(mesh=MESH)
    with b.function("main", [T]) as (x,):
        first = reshard(b, x, '[{"x"}, {}]')
        b.op("toy.neg", [first], [T])
        b.return_(reshard(b, first, '[{"y"}, {}]'))
    assert run(PASS, b) == ['%0 = reshard %arg0 [{"y"}, {}]', "func.return %0"]
    assert len(b.program.shardings) == 1


def constant(b, value):
    """Add a constant."""
    return b.op("toy.constant", [], [T], value=value)


def test_equal_constants_become_one_at_the_start():
    """Constants move to the start, the last kind first; the first of a kind stays, in nested regions, too."""
    b = Builder(mesh=MESH)
    with b.function("main", [T]) as (x,):
        x = b.op("toy.effect", [x], [T])
        single = constant(b, 1)
        b.shard(constant(b, 1), '[{"x"}, {}]')
        with b.region_op("toy.loop", [x], [T]) as op, b.region(op, [T]) as (inner,):
            b.op("toy.yield", [b.op("toy.add", [b.op("toy.add", [inner, constant(b, 2)], [T]), constant(b, 1)], [T])])
        b.return_(b.op("toy.add", [single, op.results[0]], [T]))
    run(PASS, b)
    block = b.program.functions["main"].regions[0].block
    assert [op.attributes.get("value") for op in block.ops][:3] == [2, 1, None]
    assert len([op for op in b.program.walk() if op.name == "toy.constant"]) == 2
    assert not b.program.shardings


def test_constants_at_the_start_keep_their_order():
    """A constant at the start, or behind one, does not move."""
    b = Builder(mesh=MESH)
    with b.function("main", [T]) as (x,):
        values = [constant(b, 1), constant(b, 2)]
        b.return_(*values, b.op("toy.effect", [x], [T]))
    run(PASS, b)
    block = b.program.functions["main"].regions[0].block
    assert [op.attributes.get("value") for op in block.ops][:2] == [1, 2]


def test_isolated_regions_and_split_constants_are_apart():
    """An isolated region cannot use constants from outside, and constants split per use are not united again."""
    b = Builder(mesh=MESH)
    with b.function("main", [T]):
        single = constant(b, 1)
        with b.region_op("toy.isolated", [], [T]) as op, b.region(op):
            b.op("toy.yield", [constant(b, 1)])
        split = [b.op("sdy.constant", [], [T], value=1) for _ in range(2)]
        b.return_(single, op.results[0], *split)
    names = [line.split()[2] for line in run(PASS, b)[:-1] if " = " in line]
    assert sorted(names) == ["constant"] * 4 + ["isolated"]


def test_only_constants_that_mlir_knows_are_united_across_shardings():
    """Constants of a dialect of one's own keep their shardings per use; those that MLIR folds share the first one."""
    b = Builder(mesh=MESH)
    with b.function("main"):
        values = []
        for name in ("toy.constant", "toy.folded"):
            for sharding in ('[{"x"}, {}]', '[{}, {"x"}]', '[{"x"}, {}]'):
                values.append(b.op(name, [], [T], value=1))
                b.shard(values[-1], sharding)
        b.return_(*values)
    names = [line.split()[2] for line in run(PASS, b)[:-1]]
    assert sorted(names) == ["constant"] * 2 + ["folded"]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.0, "1.0"),
        (1e-10, "1.0e-10"),
        (1.5e300, "1.5e+300"),
        (-3, "-3"),
        (True, "true"),
        (float("-inf"), "0xFF800000"),
        (RawAttribute("#complex.number<:f32 1.0, 2.5> : complex<f32>"), "(1.0, 2.5)"),
    ],
)
def test_what_stands_for_a_constant_becomes_one(value, text):
    """An op that folds is a constant at the start of the function, without a sharding; what only it used goes."""
    b = Builder(mesh=MESH)
    with b.function("main", [T]) as (x,):
        shape = b.op("toy.neg", [x], [T])
        like = b.op("toy.like", [shape], [T], {"value": value})
        b.shard(like, '[{"x"}, {}]')
        b.return_(b.op("toy.add", [x, like], [T]))
    assert run(PASS, b) == ["%0 = folded", "%1 = add %arg0, %0", "func.return %1"]
    (constant, *_) = b.program.functions["main"].regions[0].block.ops
    assert str(constant.attributes["value"]) == f"dense<{text}> : tensor<8x8xf32>"


def test_what_has_no_text_is_not_folded():
    """A value that cannot be written as an element leaves the op as it is."""
    b = Builder(mesh=MESH)
    with b.function("main", [T]) as (x,):
        b.return_(b.op("toy.like", [x], [T], {"value": RawAttribute("#other.value")}))
    assert run(PASS, b) == ["%0 = like %arg0", "func.return %0"]
