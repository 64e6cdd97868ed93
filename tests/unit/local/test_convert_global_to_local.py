"""Conversion to local programs: what each device runs gives what one device gives."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("jaxlib", reason="programs are MLIR text")

from shardy_py.errors import ShardyError
from shardy_py.frontends.mlir import import_module, parse_module, write_back
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.local.convert_global_to_local import ConvertGlobalToLocalPass
from shardy_py.plugins import Registry
from shardy_py.transforms.run import run_on_attributes
from tests.unit.local.host_devices import compare, compare_padded

pytestmark = pytest.mark.slow

MESH = 'sdy.mesh @mesh = <["x"=2, "y"=4], device_ids=[3, 1, 0, 2, 7, 6, 5, 4]>\n'
XY = '{sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>}'
YX = '{sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {"x"}]>}'
REGISTRY = Registry.from_entry_points()


def convert(body: str, **options: bool) -> str:
    """Return a converted module as text."""
    program = import_module(parse_module(MESH + body))
    run_on_attributes(program, [ConvertGlobalToLocalPass(**options)], PassContext(REGISTRY))
    return str(write_back(program))


def numbers(*shape: int) -> np.ndarray:
    """Return numbers of both signs in a fixed order."""
    return np.random.default_rng(sum(shape)).normal(size=shape).astype(np.float32)


def test_a_contraction_over_a_sharded_dimension_is_summed_once() -> None:
    """Partial products of shards are combined over exactly the devices that hold other parts."""
    text = (
        MESH
        + f"""func.func @main(%a: tensor<8x16xf32> {XY}, %b: tensor<16x8xf32> {YX}) -> tensor<8x8xf32> {{
      %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
          : (tensor<8x16xf32>, tensor<16x8xf32>) -> tensor<8x8xf32>
      %1 = stablehlo.tanh %0 : tensor<8x8xf32>
      return %1 : tensor<8x8xf32>
    }}"""
    )
    assert compare(text, numbers(8, 16), numbers(16, 8)) == []


@pytest.mark.parametrize(
    ("op", "initial"), [("maximum", "0xFF800000"), ("minimum", "0x7F800000"), ("add", "0.0"), ("multiply", "1.0")]
)
def test_partial_results_combine_as_the_op_does(op: str, initial: str) -> None:
    """A reduction over shards is the reduction over the whole, whatever it combines by."""
    text = (
        MESH
        + f"""func.func @main(%a: tensor<8x16xf32> {XY}) -> tensor<8xf32> {{
      %i = stablehlo.constant dense<{initial}> : tensor<f32>
      %0 = stablehlo.reduce(%a init: %i) applies stablehlo.{op} across dimensions = [1]
          : (tensor<8x16xf32>, tensor<f32>) -> tensor<8xf32>
      return %0 : tensor<8xf32>
    }}"""
    )
    assert compare(text, numbers(8, 16) - 3) == []


def test_an_initial_value_counts_once() -> None:
    """A sum that starts from one is not one too large per shard."""
    text = (
        MESH
        + f"""func.func @main(%a: tensor<8x16xf32> {XY}) -> tensor<8xf32> {{
      %i = stablehlo.constant dense<1.0> : tensor<f32>
      %0 = stablehlo.reduce(%a init: %i) applies stablehlo.add across dimensions = [1]
          : (tensor<8x16xf32>, tensor<f32>) -> tensor<8xf32>
      return %0 : tensor<8xf32>
    }}"""
    )
    assert compare(text, numbers(8, 16)) == []


def test_offsets_follow_the_devices() -> None:
    """Counters and constants that differ per element are those of the device's part, in any order of devices."""
    text = (
        MESH
        + f"""func.func @main(%a: tensor<4x8xf32> {XY}) -> tensor<4x8xf32> {{
      %0 = stablehlo.iota dim = 1 : tensor<4x8xf32>
      %1 = stablehlo.constant dense<[[1.0], [2.0], [3.0], [4.0]]> : tensor<4x1xf32>
      %2 = stablehlo.broadcast_in_dim %1, dims = [0, 1] : (tensor<4x1xf32>) -> tensor<4x8xf32>
      %3 = stablehlo.add %a, %0 : tensor<4x8xf32>
      %4 = stablehlo.multiply %3, %2 : tensor<4x8xf32>
      return %4 : tensor<4x8xf32>
    }}"""
    )
    compare(text, numbers(4, 8))


def test_a_loop_carries_shards() -> None:
    """The arguments of the regions of a loop, which have no sharding of their own, are as local as its results."""
    text = (
        MESH
        + f"""func.func @main(%a: tensor<8x8xf32> {XY}) -> tensor<8x8xf32> {{
      %c = stablehlo.constant dense<0> : tensor<i32>
      %n = stablehlo.constant dense<3> : tensor<i32>
      %one = stablehlo.constant dense<1> : tensor<i32>
      %0:2 = stablehlo.while(%i = %c, %v = %a) : tensor<i32>, tensor<8x8xf32>
      cond {{
        %p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %p : tensor<i1>
      }} do {{
        %w = stablehlo.dot_general %v, %v, contracting_dims = [1] x [0]
          : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
        %t = stablehlo.tanh %w : tensor<8x8xf32>
        %j = stablehlo.add %i, %one : tensor<i32>
        stablehlo.return %j, %t : tensor<i32>, tensor<8x8xf32>
      }}
      return %0#1 : tensor<8x8xf32>
    }}"""
    )
    assert compare(text, numbers(8, 8)) == []


def test_called_functions_are_local_too() -> None:
    """A call hands shards to a function and gets shards back."""
    text = (
        MESH
        + f"""func.func @main(%a: tensor<8x8xf32> {XY}) -> tensor<8x8xf32> {{
      %0 = call @f(%a) : (tensor<8x8xf32>) -> tensor<8x8xf32>
      return %0 : tensor<8x8xf32>
    }}
    func.func private @f(%a: tensor<8x8xf32>) -> tensor<8x8xf32> {{
      %0 = stablehlo.transpose %a, dims = [1, 0] : (tensor<8x8xf32>) -> tensor<8x8xf32>
      %1 = stablehlo.subtract %0, %a : tensor<8x8xf32>
      return %1 : tensor<8x8xf32>
    }}"""
    )
    assert compare(text, numbers(8, 8)) == []


def test_what_has_no_local_form_is_gathered() -> None:
    """An op without a local form runs on gathered dimensions, and the warning names it."""
    text = (
        MESH
        + f"""func.func @main(%a: tensor<8x16xf32> {XY}, %b: tensor<8x8xf32>) -> tensor<8x16xf32> {{
      %i = stablehlo.constant dense<0.0> : tensor<f32>
      %0 = "stablehlo.select_and_scatter"(%a, %b, %i) <{{
          window_dimensions = array<i64: 1, 3>, window_strides = array<i64: 1, 2>,
          padding = dense<[[0, 0], [0, 1]]> : tensor<2x2xi64>}}> ({{
        ^bb0(%x: tensor<f32>, %y: tensor<f32>):
          %1 = stablehlo.compare GE, %x, %y : (tensor<f32>, tensor<f32>) -> tensor<i1>
          stablehlo.return %1 : tensor<i1>
      }}, {{
        ^bb0(%x: tensor<f32>, %y: tensor<f32>):
          %1 = stablehlo.maximum %x, %y : tensor<f32>
          stablehlo.return %1 : tensor<f32>
      }}) : (tensor<8x16xf32>, tensor<8x8xf32>, tensor<f32>) -> tensor<8x16xf32>
      return %0 : tensor<8x16xf32>
    }}"""
    )
    assert compare(text, numbers(8, 16), numbers(8, 8)) == ["stablehlo.select_and_scatter"]


def test_without_gathering_it_is_an_error() -> None:
    """By default an op without a local form is an error at its place."""
    body = f"""func.func @main(%a: tensor<8x16xf32> {XY}) -> (tensor<8x16xf32> {XY}) {{
      %0 = stablehlo.custom_call @own(%a)
          {{sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{{"x"}}, {{"y"}}]>]>}}
          : (tensor<8x16xf32>) -> tensor<8x16xf32>
      return %0 : tensor<8x16xf32>
    }}"""
    with pytest.raises(ShardyError, match=r"'stablehlo.custom_call' op: the op has no sharding rule and no local form"):
        convert(body)


def test_dimensions_are_padded_to_divide() -> None:
    """A shard of a dimension that does not divide is as large as the largest part."""
    assert "%arg0: tensor<4x3xf32>" in convert(f"func.func @main(%a: tensor<8x10xf32> {XY}) {{ return }}")


def test_dynamic_dimensions_must_be_whole() -> None:
    """A dimension whose size is not known cannot be sharded, and the error says where it stands."""
    with pytest.raises(ShardyError, match="dimension 1 of tensor<8x\\?xf32> is dynamic and sharded"):
        convert(f"func.func @main(%a: tensor<8x?xf32> {XY}) {{ return }}")


def test_reshards_must_be_collectives() -> None:
    """A reshard says no collective, and the error says which pass makes one of it."""
    body = f"""func.func @main(%a: tensor<8x16xf32> {XY}) -> tensor<8x16xf32> {{
      %0 = sdy.reshard %a <@mesh, [{{}}, {{}}]> : tensor<8x16xf32>
      return %0 : tensor<8x16xf32>
    }}"""
    with pytest.raises(ShardyError, match="sdy-reshard-to-collectives"):
        convert(body)


def test_a_returned_value_must_fit_the_result() -> None:
    """A function whose result is sharded in another way than what it returns is refused."""
    body = f"func.func @main(%a: tensor<8x8xf32> {XY}) -> tensor<8x8xf32> {{ return %a : tensor<8x8xf32> }}"
    with pytest.raises(ShardyError, match="local-types"):
        convert(body)


def test_new_channels_follow_those_of_the_program() -> None:
    """Collectives of the program keep their channels, and new ones get others."""
    body = f"""func.func @main(%a: tensor<8x16xf32> {XY}) -> tensor<8x16xf32> {{
      %0 = "stablehlo.collective_permute"(%a) <{{
          channel_handle = #stablehlo.channel_handle<handle = 4, type = 1>,
          source_target_pairs = dense<[[0, 1]]> : tensor<1x2xi64>}}>
          {{sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{{"x"}}, {{"y"}}]>]>}}
          : (tensor<8x16xf32>) -> tensor<8x16xf32>
      %1 = sdy.all_gather [{{"x"}}, {{"y"}}] %0 out_sharding=<@mesh, [{{}}, {{}}]> : tensor<8x16xf32>
      return %1 : tensor<8x16xf32>
    }}"""
    combined = convert(body)
    assert "handle = 5" in combined
    assert combined.count("stablehlo.all_gather") == 1
    assert convert(body, per_dim_all_gather=True).count("stablehlo.all_gather") == 2


def test_a_branch_may_be_sharded_where_its_result_is_not() -> None:
    """What a branch hands on is resharded to the sharding of the result, and the warning says so."""
    text = (
        MESH
        + f"""func.func @main(%p: tensor<i1>, %a: tensor<8x8xf32> {XY}) -> tensor<8x8xf32> {{
      %0 = "stablehlo.if"(%p) ({{
        %1 = stablehlo.sine %a : tensor<8x8xf32>
        stablehlo.return %1 : tensor<8x8xf32>
      }}, {{
        %1 = stablehlo.cosine %a : tensor<8x8xf32>
        stablehlo.return %1 : tensor<8x8xf32>
      }}) : (tensor<i1>) -> tensor<8x8xf32>
      return %0 : tensor<8x8xf32>
    }}"""
    )
    assert set(compare(text, np.array(True), numbers(8, 8))) <= {"stablehlo.return"}


def test_a_factor_that_no_result_has_is_gathered() -> None:
    """An op whose rule hands a sharded dimension to no result sees all of it, so that devices agree."""
    text = (
        MESH
        + f"""func.func @main(%a: tensor<8x16xf32> {XY}) -> (tensor<8x4xf32>, tensor<8x4xi32>) {{
      %values, %indices = chlo.top_k(%a, k = 4) : tensor<8x16xf32> -> (tensor<8x4xf32>, tensor<8x4xi32>)
      return %values, %indices : tensor<8x4xf32>, tensor<8x4xi32>
    }}"""
    )
    compare(text, numbers(8, 16))


@pytest.mark.parametrize("op", ["add", "multiply", "maximum"])
def test_initial_values_count_where_shards_have_one_element(op: str) -> None:
    """A reduction over as many devices as elements starts from its initial value, too."""
    text = (
        MESH
        + f"""func.func @main(%a: tensor<4xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{"y"}}]>}}, %i: tensor<f32>)
        -> tensor<f32> {{
      %0 = stablehlo.reduce(%a init: %i) applies stablehlo.{op} across dimensions = [0]
          : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
      return %0 : tensor<f32>
    }}"""
    )
    assert compare(text, numbers(4), np.float32(5)) == []


def test_barriers_move_nothing() -> None:
    """Behind a barrier a tensor is sharded as before it, and what the barrier kept back is not gathered."""
    barrier = "allowed_direction=BACKWARD {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {}]>]>}"
    cut = '{sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>}'
    body = f"""func.func @main(%a: tensor<8x16xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{"x"}}, {{}}]>}}) ->
        (tensor<8x16xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{"x"}}, {{}}]>}}) {{
      %0 = sdy.propagation_barrier %a {barrier} : tensor<8x16xf32>
      %1 = stablehlo.negate %0 {cut} : tensor<8x16xf32>
      return %1 : tensor<8x16xf32>
    }}"""
    assert "all_gather" not in convert(body, trust_shardings=False, gather_unsupported_ops=True)


def test_generic_ops_make_no_parts_of_results() -> None:
    """An op whose result is sharded along a factor that no operand has is made whole, and then cut."""
    text = (
        MESH
        + """func.func @main(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) ->
        (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>}) {
      %0 = stablehlo.custom_call @own(%a) {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([i, k])
          {i=8, j=8, k=8}, custom>, sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {"y"}]>]>}
          : (tensor<8x8xf32>) -> tensor<8x8xf32>
      return %0 : tensor<8x8xf32>
    }"""
    )
    written = convert(text.removeprefix(MESH), trust_shardings=False, gather_unsupported_ops=True)
    assert "(tensor<4x8xf32>) -> tensor<4x8xf32>" in written
    assert "tensor<4x2xf32>" in written


def test_reshards_between_meshes_need_gathering() -> None:
    """Where nothing may be gathered, the error says that meshes differ."""
    body = f"""sdy.mesh @turned = <["y"=4, "x"=2]>
    func.func @main(%a: tensor<8x16xf32> {XY}) -> tensor<8x16xf32> {{
      %0 = sdy.reshard %a <@turned, [{{"y"}}, {{}}]> : tensor<8x16xf32>
      return %0 : tensor<8x16xf32>
    }}"""
    with pytest.raises(ShardyError, match="between two meshes"):
        convert(body)


def test_collectives_by_way_of_axes_that_do_not_fit_together() -> None:
    """From some parts of an axis of six to others collectives pass by parts that no device has."""
    text = """sdy.mesh @mesh = <["x"=6, "y"=2], device_ids=[0, 7, 6, 9, 11, 10, 3, 4, 5, 8, 1, 2]>
    func.func @main(%a: tensor<7x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {"x":(3)2}]>})
        -> (tensor<7x4xf32>, tensor<7x4xf32>) {
      %0 = sdy.sharding_constraint %a <@mesh, [{"y", "x":(1)2}, {}]> : tensor<7x4xf32>
      %1 = stablehlo.sine %0 : tensor<7x4xf32>
      %2 = sdy.sharding_constraint %1 <@mesh, [{"y"}, {"x":(3)2}]> : tensor<7x4xf32>
      %3 = stablehlo.cosine %2 : tensor<7x4xf32>
      return %1, %3 : tensor<7x4xf32>, tensor<7x4xf32>
    }"""
    compare_padded(text, numbers(7, 4))


def test_slices_of_what_devices_have_are_not_gathered() -> None:
    """A concatenation whose operands were cut from whole ones takes these, and no warning says that it gathers."""
    text = (
        MESH
        + """func.func @main(%a: tensor<6x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) ->
        (tensor<6x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>}) {
      %0 = stablehlo.slice %a [0:6, 3:4] : (tensor<6x4xf32>) -> tensor<6x1xf32>
      %1 = stablehlo.slice %a [0:6, 0:1] : (tensor<6x4xf32>) -> tensor<6x1xf32>
      %2 = stablehlo.concatenate %0, %a, %1, dim = 1
          {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {"y"}]>]>}
          : (tensor<6x1xf32>, tensor<6x4xf32>, tensor<6x1xf32>) -> tensor<6x6xf32>
      return %2 : tensor<6x6xf32>
    }"""
    )
    assert compare_padded(text, numbers(6, 4)) == []


def test_tensors_on_a_single_device_are_resolved_first() -> None:
    """Their shardings say nothing of dimensions; the pass that brings them to their device comes before this one."""
    text = """sdy.mesh @one = <[], device_ids=[3]>
    func.func @main(%a: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<8x4xf32> {
      %0 = stablehlo.tanh %a {sdy.sharding = #sdy.sharding_per_value<[<@one, []>]>} : tensor<8x4xf32>
      return %0 : tensor<8x4xf32>
    }"""
    for strict in (True, False):
        with pytest.raises(ShardyError, match=r"'stablehlo.tanh' op: .* run sdy-resolve-single-device-sharding first"):
            convert(text, gather_unsupported_ops=not strict)
