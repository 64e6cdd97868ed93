"""Ops on one device: they run there only, and all devices get their results."""

from __future__ import annotations

import pytest

pytest.importorskip("jax", reason="programs run through XLA")
np = pytest.importorskip("numpy")

from shardy_py.api.options import LocalOptions  # noqa: E402
from shardy_py.frontends.mlir import import_module, parse_module, write_back  # noqa: E402
from shardy_py.ir.interfaces.passes import PassContext  # noqa: E402
from shardy_py.jax.local import make_local_program  # noqa: E402
from shardy_py.local.convert_global_to_local import ConvertGlobalToLocalPass  # noqa: E402
from shardy_py.local.resolve_single_device_sharding import ResolveSingleDeviceShardingPass  # noqa: E402
from shardy_py.plugins import Registry  # noqa: E402
from shardy_py.transforms.run import run_on_attributes  # noqa: E402

REGISTRY = Registry.from_entry_points()
TEXT = """
sdy.mesh @mesh = <["x"=2, "y"=2]>
sdy.mesh @one = <[], device_ids=[3]>
func.func @main(%a: tensor<4x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) ->
    (tensor<4x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}) {
  %0 = sdy.reshard %a <@one, []> : tensor<4x6xf32>
  %1 = stablehlo.add %0, %0 {sdy.sharding = #sdy.sharding_per_value<[<@one, []>]>} : tensor<4x6xf32>
  %2 = sdy.reshard %1 <@mesh, [{}, {}]> : tensor<4x6xf32>
  return %2 : tensor<4x6xf32>
}
"""


def test_one_device_computes() -> None:
    """The op stands in a branch for its device, behind a reshard that makes its operand whole."""
    program = import_module(parse_module(TEXT))
    run_on_attributes(program, [ResolveSingleDeviceShardingPass()], PassContext(REGISTRY))
    text = str(write_back(program))
    assert "dense<3> : tensor<i64>" in text
    assert "sdy.reshard %arg0 <@mesh, [{}, {}]>" in text
    assert 'sdy.all_reduce {"x", "y"}' in text
    assert "@one, []" not in text.partition("func.func")[2]


def test_all_devices_get_the_result() -> None:
    """The result is the sum on one device, and not one per device added up."""
    text = TEXT.replace('[{"x"}, {}]', "[{}, {}]")
    local = make_local_program(text, registry=REGISTRY, options=LocalOptions())
    array = np.arange(24, dtype=np.float32).reshape(4, 6)
    np.testing.assert_array_equal(local.run(array)[0], 2 * array)


def test_devices_may_be_replicas() -> None:
    """With several replicas and one partition, offsets come from replica ids, and collectives have no channels."""
    text = """
    sdy.mesh @mesh = <["x"=2]>
    func.func @main(%a: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}) ->
        (tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}) {
      %0 = sdy.all_slice [{"x"}] %a out_sharding=<@mesh, [{"x"}]> : tensor<4xf32>
      %1 = sdy.all_gather [{"x"}] %0 out_sharding=<@mesh, [{}]> : tensor<4xf32>
      return %1 : tensor<4xf32>
    }"""
    program = import_module(parse_module(text))
    run_on_attributes(program, [ConvertGlobalToLocalPass(replica_count=2)], PassContext(REGISTRY))
    written = str(write_back(program))
    assert "stablehlo.replica_id" in written
    assert "channel_handle" not in written
    assert "partition_id" not in written


def test_sharded_values_reach_one_device() -> None:
    """In a loop, too, all devices send their parts before the branch; what is on one device outside, all have."""
    text = """
    sdy.mesh @mesh = <["x"=2, "y"=2]>
    sdy.mesh @one = <[], device_ids=[3]>
    func.func @main(%a: tensor<4x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>},
        %b: tensor<4x6xf32> {sdy.sharding = #sdy.sharding<@one, []>}) ->
        (tensor<4x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>},
         tensor<4x6xf32> {sdy.sharding = #sdy.sharding<@one, []>}) {
      %zero = stablehlo.constant dense<0> : tensor<i32>
      %one = stablehlo.constant dense<1> : tensor<i32>
      %two = stablehlo.constant dense<2> : tensor<i32>
      %0:2 = stablehlo.while(%i = %zero, %x = %a) : tensor<i32>, tensor<4x6xf32>
          attributes {sdy.sharding = #sdy.sharding_per_value<[<@mesh, []>, <@mesh, [{"x"}, {"y"}]>]>}
      cond {
        %1 = stablehlo.compare LT, %i, %two : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %1 : tensor<i1>
      } do {
        %1 = stablehlo.add %i, %one : tensor<i32>
        %2 = stablehlo.add %x, %b {sdy.sharding = #sdy.sharding_per_value<[<@one, []>]>} : tensor<4x6xf32>
        stablehlo.return %1, %2 : tensor<i32>, tensor<4x6xf32>
      }
      %3 = stablehlo.reverse %0#1, dims = [0, 1]
          {sdy.sharding = #sdy.sharding_per_value<[<@one, []>]>} : tensor<4x6xf32>
      return %0#1, %3 : tensor<4x6xf32>, tensor<4x6xf32>
    }"""
    first = np.arange(24, dtype=np.float32).reshape(4, 6)
    actual = make_local_program(text, registry=REGISTRY, options=LocalOptions()).run(first, first[::-1].copy())
    expected = first + 2 * first[::-1]
    np.testing.assert_array_equal(actual[0], expected)
    np.testing.assert_array_equal(actual[1], expected[::-1, ::-1])
