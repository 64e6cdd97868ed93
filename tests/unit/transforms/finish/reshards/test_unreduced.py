"""Partial results are reduced before those who cannot take them, and made for those who expect them."""

import pytest

from shardy_py.errors import VerificationError
from shardy_py.ir import Builder, tensor
from shardy_py.sharding.mesh import Mesh
from shardy_py.transforms.finish.insert_explicit_reshards import InsertExplicitReshardsPass
from tests.unit.transforms.finish.reshards.reshard_toy import run

FULL = InsertExplicitReshardsPass(enable_full_version=True)
MINIMAL = InsertExplicitReshardsPass()
T = tensor(8, 8)


def returning(argument, result, *, mesh=None):
    """Return a builder with a function that returns its argument."""
    b = Builder(mesh=mesh or Mesh.of(x=2, y=2, z=4), meshes={"other": Mesh.of(x=2, w=2)})
    with b.function("main", [T]) as (x,):
        if argument is not None:
            b.shard(x, argument)
        b.return_(x, shardings=[result])
    return b


def test_an_operand_is_reduced_along_the_axes_that_the_result_does_not_keep():
    """Only the axes that end at an op are all-reduced; its other operands are not touched."""
    b = Builder(mesh=Mesh.of(x=2, y=2))
    with b.function("main", [T, T]) as (x, y):
        b.shard(x, '[{}, {}], unreduced={"x", "y"}')
        b.shard(y, '[{}, {}], unreduced={"x"}')
        z = b.op("toy.add", [x, y], [T])
        b.shard(z, '[{}, {}], unreduced={"x"}')
        b.return_(z, shardings=['[{}, {}], unreduced={"x"}'])
    assert run(MINIMAL, b) == [
        '%0 = all_reduce {"y"} %arg0 [{}, {}], unreduced={"x"}',
        '%1 = add %0, %arg1 [{}, {}], unreduced={"x"}',
        "func.return %1",
    ]


@pytest.mark.parametrize("result", ["[{}, {}]", None])
def test_returns_are_reduced_in_both_versions(result):
    """What is returned as whole is whole, whether the result says so or has no sharding."""
    for version in (FULL, MINIMAL):
        assert run(version, returning('[{}, {}], unreduced={"y"}', result)) == [
            '%0 = all_reduce {"y"} %arg0 [{}, {}]',
            "func.return %0",
        ]


def test_values_without_a_sharding_are_not_made_unreduced():
    """Nothing says that such a value is whole along the axes."""
    assert run(FULL, returning(None, '[{}, {}], unreduced={"y"}')) == ["func.return %arg0"]


def test_replicated_axes_become_unreduced():
    """Axes that neither shard nor are unreduced become so without moving data."""
    assert run(MINIMAL, returning('[{}, {}], unreduced={"x"}', '[{}, {}], unreduced={"x", "y"}')) == [
        '%0 = replicated_to_unreduced {"y"} %arg0 [{}, {}], unreduced={"x", "y"}',
        "func.return %0",
    ]


def test_sharded_axes_become_unreduced():
    """Axes that shard a dimension beyond the target become unreduced; sub-axes are split off."""
    assert run(MINIMAL, returning('[{"x", "z"}, {"y"}]', '[{"x", "z":(1)2}, {}], unreduced={"y", "z":(2)2}')) == [
        '%0 = sharded_to_unreduced [{"z":(2)2}, {"y"}] %arg0 [{"x", "z":(1)2}, {}], unreduced={"y", "z":(2)2}',
        "func.return %0",
    ]


def test_other_dimensions_are_resharded_first():
    """A dimension that has to change in another way is resharded first, then replicated axes become unreduced."""
    assert run(MINIMAL, returning('[{"x"}, {"y"}]', '[{}, {"x"}], unreduced={"y", "z"}')) == [
        '%0 = reshard %arg0 [{}, {"x"}]',
        '%1 = replicated_to_unreduced {"y", "z"} %0 [{}, {"x"}], unreduced={"y", "z"}',
        "func.return %1",
    ]
    assert run(MINIMAL, returning('[{"x"}, {"y"}]', '[{"z"}, {}], unreduced={"x", "y"}'))[:1] == [
        '%0 = reshard %arg0 [{"z"}, {"y"}]',
    ]


def test_reshards_that_make_axes_unreduced_are_replaced():
    """A reshard to unreduced axes becomes the op that makes them; its users use that."""
    b = Builder(mesh=Mesh.of(x=2))
    with b.function("main", [T]) as (x,):
        b.shard(x, "[{}, {}]")
        y = b.op("sdy.reshard", [x], [T])
        b.shard(y, '[{}, {}], unreduced={"x"}')
        b.return_(y, shardings=['[{}, {}], unreduced={"x"}'])
    assert run(MINIMAL, b) == [
        '%0 = replicated_to_unreduced {"x"} %arg0 [{}, {}], unreduced={"x"}',
        "func.return %0",
    ]


@pytest.mark.parametrize(
    ("argument", "result", "code"),
    [
        ('[{}, {}], unreduced={"x"}', "<@other, [{}, {}]>", "unreduced-mesh"),
        ("[{}, {}]", '<@other, [{}, {}], unreduced={"x"}>', "unreduced-mesh"),
        ('[{}, {}], unreduced={"x"}', '<@missing, [{}, {}], unreduced={"x"}>', "unknown-mesh"),
    ],
)
def test_unreduced_axes_stay_on_their_mesh(argument, result, code):
    """Unreduced axes of one mesh mean nothing on another one, and unknown meshes are named."""
    with pytest.raises(VerificationError) as caught:
        run(MINIMAL, returning(argument, result))
    assert caught.value.diagnostics[0].code == code


def test_other_reductions_are_named():
    """An all-reduce of axes that do not combine by a sum says how they do."""
    b = returning('[{}, {}], unreduced=max{"x"}', "[{}, {}]")
    run(MINIMAL, b)
    (op,) = [op for op in b.program.walk() if op.name == "sdy.all_reduce"]
    assert str(op.attributes["reduction_op"]) == "#sdy<reduction_op max>"
