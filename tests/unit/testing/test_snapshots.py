"""Snapshots of the shardings of whole programs."""

from __future__ import annotations

import pytest

import shardy_py as sdy
from shardy_py.ir import Builder, tensor
from shardy_py.testing import assert_sharding_snapshot, sharding_snapshot


def program(axis="data"):
    """A program with a region and an op of two results."""
    b = Builder(mesh=sdy.Mesh.of(data=2, model=2))
    with b.function("main", [tensor(8, 4)]) as (x,):
        b.shard(x, f'[{{"{axis}"}}, {{}}]')
        with b.region_op("toy.loop", [x], [tensor(8, 4)]) as loop, b.region(loop, [tensor(8, 4)]) as (carried,):
            first, _ = b.op("toy.pair", [carried], [tensor(8, 4), tensor(4)])
            b.op("toy.yield", [first])
        b.return_(loop.result, shardings=['[{}, {"model"}]'])
    return b.program


TEXT = """
    mesh @mesh = <["data"=2, "model"=2]>
    func @main
      %arg0: tensor<8x4xf32> <@mesh, [{"data"}, {}]>
      %0 = toy.loop: tensor<8x4xf32> -
        %arg1: tensor<8x4xf32> -
        %1#0 = toy.pair: tensor<8x4xf32> -
        %1#1 = toy.pair: tensor<4xf32> -
      result 0: tensor<8x4xf32> <@mesh, [{}, {"model"}]>
"""


def test_every_value_has_a_line():
    """Meshes, arguments, results of ops, of regions and of functions are all there, whatever the indentation."""
    assert_sharding_snapshot(program(), TEXT)


def test_a_text_cannot_be_updated():
    """Only a file can be written anew."""
    with pytest.raises(sdy.OptionError, match="cannot be updated"):
        assert_sharding_snapshot(program(), TEXT, update=True)


def test_a_file_is_compared_and_updated(tmp_path):
    """A missing or outdated file fails with what differs; an update writes it, folders included."""
    path = tmp_path / "deep" / "snapshot.txt"
    with pytest.raises(AssertionError, match="there is no snapshot"):
        assert_sharding_snapshot(program(), path)
    assert_sharding_snapshot(program(), path, update=True)
    assert path.read_text() == sharding_snapshot(program())
    assert_sharding_snapshot(program(), path)
    with pytest.raises(AssertionError) as caught:
        assert_sharding_snapshot(program("model"), path)
    assert '-  %arg0: tensor<8x4xf32> <@mesh, [{"data"}, {}]>' in str(caught.value)
    assert '+  %arg0: tensor<8x4xf32> <@mesh, [{"model"}, {}]>' in str(caught.value)
    assert [item.name for item in path.parent.iterdir()] == ["snapshot.txt"]


def test_a_result_shows_what_flows_along_edges():
    """A value without a sharding of its own shows that of the other end of its edge."""
    pytest.importorskip("jaxlib")
    text = """
    sdy.mesh @mesh = <["x"=2]>
    func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<8xf32> {
      %0 = stablehlo.negate %a : tensor<8xf32>
      return %0 : tensor<8xf32>
    }
    """
    actual = sharding_snapshot(sdy.propagate(text))
    assert '  %0 = stablehlo.negate: tensor<8xf32> <@mesh, [{"x"}]>\n' in actual
    assert "  %0 = stablehlo.negate: tensor<8xf32> -\n" in sharding_snapshot(text)
