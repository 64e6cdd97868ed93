"""What XLA drops, merges and keeps apart before it counts; the figures are those of jaxlib 0.10.2."""

from __future__ import annotations

import pytest

pytest.importorskip("jaxlib", reason="the frontend is jaxlib's")

from shardy_py.cost.session import Session

MESH = 'sdy.mesh @mesh = <["x"=4, "y"=2]>\n'


def _cost(body, profile="xla-cpu"):
    return Session.open(MESH + body).evaluate(profile=profile, partitioner="xla").cost


LOOP = """
func.func @main(%x: tensor<8xf32>, %t: tensor<8xf32>, %i: tensor<4x1xi32>) -> tensor<8xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %end = stablehlo.constant dense<5> : tensor<i32>
  %0:2 = stablehlo.while(%n = %zero, %y = %t) : tensor<i32>, tensor<8xf32>
  cond {
    %c = stablehlo.compare LT, %n, %end : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %m = stablehlo.add %n, %one : tensor<i32>
    %u = stablehlo.slice %y [0:4] : (tensor<8xf32>) -> tensor<4xf32>
    %z = "stablehlo.scatter"(%y, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<
      inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %s = stablehlo.add %a, %b : tensor<f32>
        stablehlo.return %s : tensor<f32>
    }) : (tensor<8xf32>, tensor<4x1xi32>, tensor<4xf32>) -> tensor<8xf32>
    stablehlo.return %m, %z : tensor<i32>, tensor<8xf32>
  }
  %1 = stablehlo.negate %x : tensor<8xf32>
  return USED : tensor<8xf32>
}"""


def test_a_loop_whose_results_nobody_uses_does_not_run():
    """The 8 negations stay; a loop that is used takes 5 runs of 4 additions, a step and a comparison, and one more."""
    assert _cost(LOOP.replace("USED", "%1")).flops.value == 8
    assert _cost(LOOP.replace("USED", "%0#1")).flops.value == 5 * (4 + 1 + 1) + 1


def test_equal_reductions_are_computed_once():
    """Two sums of the same rows are one, a maximum is another one."""
    text = """
func.func @main(%x: tensor<8x16xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [1]
    : (tensor<8x16xf32>, tensor<f32>) -> tensor<8xf32>
  %1 = stablehlo.reduce(%x init: %zero) applies stablehlo.OTHER across dimensions = [1]
    : (tensor<8x16xf32>, tensor<f32>) -> tensor<8xf32>
  return %0, %1 : tensor<8xf32>, tensor<8xf32>
}"""
    assert _cost(text.replace("OTHER", "add")).flops.value == 15 * 8
    assert _cost(text.replace("OTHER", "maximum")).flops.value == 2 * 15 * 8


def test_equal_calls_of_lapack_stay_apart():
    """XLA calls LAPACK twice, and negates each of the 64 numbers twice; another target is called once."""
    text = """
func.func @main(%x: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>) {
  %0 = stablehlo.custom_call @TARGET(%x) : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = stablehlo.custom_call @TARGET(%x) : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %2 = stablehlo.negate %0 : tensor<8x8xf32>
  %3 = stablehlo.negate %1 : tensor<8x8xf32>
  return %2, %3 : tensor<8x8xf32>, tensor<8x8xf32>
}"""
    assert _cost(text.replace("TARGET", "lapack_spotrf_ffi")).flops.value == 2 * 64
    assert _cost(text.replace("TARGET", "Cholesky")).flops.value == 64


def test_a_choice_between_the_same_carried_value_is_that_value():
    """A loop carries the sharding: what is chosen has none of its own, and its choice costs nothing all the same."""
    text = """
func.func @main(%x: tensor<64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>},
                %p: tensor<64xi1> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<64xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %end = stablehlo.constant dense<5> : tensor<i32>
  %0:2 = stablehlo.while(%n = %zero, %y = %x) : tensor<i32>, tensor<64xf32>
  cond {
    %c = stablehlo.compare LT, %n, %end : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %m = stablehlo.add %n, %one : tensor<i32>
    %s = stablehlo.select %p, %y, OTHER : tensor<64xi1>, tensor<64xf32>
    %z = stablehlo.negate %s : tensor<64xf32>
    stablehlo.return %m, %z : tensor<i32>, tensor<64xf32>
  }
  return %0#1 : tensor<64xf32>
}"""
    same, other = (_cost(text.replace("OTHER", name)).flops.value for name in ("%y", "%x"))
    assert same == 5 * (16 + 1 + 1) + 1
    assert other == same + 5 * 16


def test_a_look_up_is_not_made_again_for_each_sum_of_what_it_finds():
    """The 512 elements of the table are negated once for both sums, which add and compare 64 rows of 4 numbers."""
    text = """
func.func @main(%t: tensor<128x4xf32>, %i: tensor<64x1xi32>) -> (tensor<64xf32>, tensor<64xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %n = stablehlo.negate %t : tensor<128x4xf32>
  %0 = "stablehlo.gather"(%n, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1],
    collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>,
    slice_sizes = array<i64: 1, 4>}> : (tensor<128x4xf32>, tensor<64x1xi32>) -> tensor<64x4xf32>
  %1 = stablehlo.reduce(%0 init: %zero) applies stablehlo.add across dimensions = [1]
    : (tensor<64x4xf32>, tensor<f32>) -> tensor<64xf32>
  %2 = stablehlo.reduce(%0 init: %zero) applies stablehlo.maximum across dimensions = [1]
    : (tensor<64x4xf32>, tensor<f32>) -> tensor<64xf32>
  return %1, %2 : tensor<64xf32>, tensor<64xf32>
}"""
    assert _cost(text).flops.value == 512 + 2 * 3 * 64


def _written(places):
    """Return a program that writes rows of 64 elements to places of a donated table."""
    return f"""
func.func @main(%x: tensor<512x64xf32> {{tf.aliasing_output = 0 : i32}}, %i: tensor<{places}x1xi32>,
    %v: tensor<{places}x64xf32>) -> tensor<512x64xf32> {{
  %0 = "stablehlo.scatter"(%x, %i, %v) <{{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1],
      inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}}> ({{
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      stablehlo.return %b : tensor<f32>
  }}) : (tensor<512x64xf32>, tensor<{places}x1xi32>, tensor<{places}x64xf32>) -> tensor<512x64xf32>
  return %0 : tensor<512x64xf32>
}}"""


def test_a_scatter_to_one_place_updates_a_slice():
    """Of the table a row is read and written, the place is compared with the bounds, and the row chosen by that."""
    cost = Session.open(_written(1)).evaluate(profile="xla-cpu", partitioner="xla").cost
    assert cost.memory_traffic_bytes.value == 3 * 4 * 64 + 4
    assert cost.flops.value == 64 + 7


def test_a_scatter_to_several_places_counts_the_table():
    """A fused scatter reads and writes it as a whole, as XLA counts."""
    cost = Session.open(_written(8)).evaluate(profile="xla-cpu", partitioner="xla").cost
    assert cost.memory_traffic_bytes.value == pytest.approx(2 * 4 * 512 * 64 + 4 * 8 * 65, abs=64)


@pytest.mark.parametrize(("donated", "copies"), [("{tf.aliasing_output = 0 : i32}", 0), ("", 2)])
def test_only_arguments_that_nobody_donates_are_copied_before_a_loop(donated, copies):
    """A loop of ten iterations updates a row of 64 elements of a table."""
    cost = (
        Session.open(f"""
func.func @main(%x: tensor<512x64xf32> {donated}, %v: tensor<1x64xf32>) -> tensor<512x64xf32> {{
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %end = stablehlo.constant dense<10> : tensor<i32>
  %0:2 = stablehlo.while(%n = %zero, %t = %x) : tensor<i32>, tensor<512x64xf32>
  cond {{
    %c = stablehlo.compare LT, %n, %end, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  }} do {{
    %m = stablehlo.add %n, %one : tensor<i32>
    %u = stablehlo.dynamic_update_slice %t, %v, %n, %zero
      : (tensor<512x64xf32>, tensor<1x64xf32>, tensor<i32>, tensor<i32>) -> tensor<512x64xf32>
    stablehlo.return %m, %u : tensor<i32>, tensor<512x64xf32>
  }}
  return %0#1 : tensor<512x64xf32>
}}""")
        .evaluate(profile="xla-cpu", partitioner="xla")
        .cost
    )
    table, row = 4 * 512 * 64, 4 * 64
    assert cost.memory_traffic_bytes.value == pytest.approx(copies * table + 10 * 2 * row, abs=10 * 64)


def _stacking(loops, stacks):
    """Return a program with loops that write a row per iteration into tensors of zeros, so many each."""
    names = [f"%s{number}" for number in range(stacks)]
    rows = "\n".join(
        f"    %u{number} = stablehlo.dynamic_update_slice {name}, %v, %n, %zero"
        " : (tensor<512x64xf32>, tensor<1x64xf32>, tensor<i32>, tensor<i32>) -> tensor<512x64xf32>"
        for number, name in enumerate(names)
    )
    types = ", ".join(["tensor<i32>", *["tensor<512x64xf32>"] * stacks])
    body = "\n".join(
        f"""
  %l{loop}:{stacks + 1} = stablehlo.while(%n = %zero, {", ".join(f"{name} = %z" for name in names)}) : {types}
  cond {{
    %c = stablehlo.compare LT, %n, %end, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  }} do {{
    %step = stablehlo.constant dense<{loop + 1}> : tensor<i32>
    %m = stablehlo.add %n, %step : tensor<i32>
{rows}
    stablehlo.return %m, {", ".join(f"%u{number}" for number in range(stacks))} : {types}
  }}"""
        for loop in range(loops)
    )
    loop_results = [f"%l{loop}#{number + 1}" for loop in range(loops) for number in range(stacks)]
    results = ", ".join(["tensor<512x64xf32>"] * len(loop_results))
    return f"""
func.func @main(%v: tensor<1x64xf32>) -> ({results}) {{
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %end = stablehlo.constant dense<10> : tensor<i32>
  %f = stablehlo.constant dense<0.0> : tensor<f32>
  %z = stablehlo.broadcast_in_dim %f, dims = [] : (tensor<f32>) -> tensor<512x64xf32>
{body}
  return {", ".join(loop_results)} : {results}
}}"""


@pytest.mark.parametrize(("loops", "stacks", "copies"), [(1, 1, 0), (1, 3, 2), (2, 1, 2)])
def test_zeros_that_several_stacks_start_as_are_copied(loops, stacks, copies):
    """The last stack of an only loop takes the zeros themselves; no one of two loops does: either may run first."""
    cost = Session.open(_stacking(loops, stacks)).evaluate(profile="xla-cpu", partitioner="xla").cost
    table, rows = 4 * 512 * 64, 10 * stacks + (5 * stacks if loops == 2 else 0)
    expected = (1 + 2 * copies) * table + rows * 2 * 4 * 64
    assert cost.memory_traffic_bytes.value == pytest.approx(expected, abs=0.01 * expected)


def _guarded(choice, results="%1", types="tensor<512x64xf32>"):
    """Return a program that chooses between a donated table and an update of one of its rows."""
    return f"""
func.func @main(%x: tensor<512x64xf32> {{tf.aliasing_output = 0 : i32}}, %v: tensor<1x64xf32>, %i: tensor<i32>,
    %p: tensor<i1>) -> ({types}) {{
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %0 = stablehlo.dynamic_update_slice %x, %v, %i, %zero
    : (tensor<512x64xf32>, tensor<1x64xf32>, tensor<i32>, tensor<i32>) -> tensor<512x64xf32>
  %1 = stablehlo.select %p, {choice} : tensor<i1>, tensor<512x64xf32>
  return {results} : {types}
}}"""


@pytest.mark.parametrize("choice", ["%0, %x", "%x, %0"])
def test_an_update_that_is_chosen_or_not_touches_its_row_alone(choice):
    """The row is read, chosen and written, whichever way around the choice is written."""
    cost = Session.open(_guarded(choice)).evaluate(profile="xla-cpu", partitioner="xla").cost
    assert cost.memory_traffic_bytes.value == pytest.approx(3 * 4 * 64, abs=32)
    assert cost.flops.value == 64


def test_an_update_that_is_a_result_too_is_chosen_as_a_whole():
    """Each element of the table is chosen."""
    types = "tensor<512x64xf32>, tensor<512x64xf32>"
    cost = Session.open(_guarded("%0, %x", "%1, %0", types)).evaluate(profile="xla-cpu", partitioner="xla").cost
    assert cost.flops.value == 512 * 64
