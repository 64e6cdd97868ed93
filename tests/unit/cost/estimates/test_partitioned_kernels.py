"""Kernels and transfers that XLA's partitioner makes: slices, halos with masks, rotations, sorts and scatters.

The numbers are those of XLA:CPU of jaxlib 0.10.2 for the same programs, without operations on single indices.
"""

from __future__ import annotations

import pytest

pytest.importorskip("jaxlib", reason="the frontend is jaxlib's")

from shardy_py.cost.session import Session

MESH = 'sdy.mesh @mesh = <["x"=4, "y"=2]>\n'


def _cost(body, profile="xla-cpu"):
    return Session.open(MESH + body).evaluate(profile=profile, partitioner="xla").cost


def _on(*axes):
    dims = ", ".join("{" + (f'"{axis}"' if axis else "") + "}" for axis in axes)
    return f"{{sdy.sharding = #sdy.sharding<@mesh, [{dims}]>}}"


def _sent(cost):
    return [(item.kind, item.bytes) for item in cost.transfers if item.bytes]


@pytest.mark.parametrize(
    ("op", "number"),
    [
        ("stablehlo.add %x, %c", "0.0"),
        ("stablehlo.add %c, %x", "0.0"),
        ("stablehlo.subtract %x, %c", "0.0"),
        ("stablehlo.multiply %x, %c", "1.0"),
        ("stablehlo.divide %x, %c", "1.0"),
    ],
)
@pytest.mark.parametrize("profile", ["xla-cpu", "none"])
def test_an_op_with_a_neutral_constant_costs_nothing(op, number, profile):
    """Only the negation of the 64 elements is left; with another constant the op counts, too."""
    text = f"""
func.func @main(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {{
  %s = stablehlo.constant dense<NUMBER> : tensor<f32>
  %c = stablehlo.broadcast_in_dim %s, dims = [] : (tensor<f32>) -> tensor<8x8xf32>
  %0 = {op} : tensor<8x8xf32>
  %1 = stablehlo.negate %0 : tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}}"""
    assert _cost(text.replace("NUMBER", number), profile).flops.value == 64
    assert _cost(text.replace("NUMBER", "3.0"), profile).flops.value == 128


def test_a_difference_from_zero_is_no_copy():
    """Nothing is neutral on the left of a subtraction."""
    cost = _cost("""
func.func @main(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %c = stablehlo.constant dense<0.0> : tensor<8x8xf32>
  %0 = stablehlo.subtract %c, %x : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}""")
    assert cost.flops.value == 64


def test_what_is_made_for_an_all_to_all_is_computed_for_each_of_its_slices():
    """The product of the 16 x 64 elements of a device is computed four times, once for each device it sends to."""
    cost = _cost(f"""
func.func @main(%a: tensor<64x64xf32> {_on("x", "")}, %b: tensor<64x64xf32> {_on("x", "")})
    -> (tensor<64x64xf32> {_on("", "x")}) {{
  %0 = stablehlo.multiply %a, %b {{sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{{"x"}}, {{}}]>]>}}
    : tensor<64x64xf32>
  return %0 : tensor<64x64xf32>
}}""")
    assert [kind for kind, _ in _sent(cost)] == ["all_to_all"]
    assert cost.flops.value == 4 * 16 * 64


@pytest.mark.parametrize(("first", "amount"), [(63, 1), (1, 63)])
def test_a_rotation_sends_one_row_and_computes_what_it_slices_once_more(first, amount):
    """Rows go around by one: a device gets one row of a neighbour, and negates its 16 x 32 elements twice."""
    cost = _cost(f"""
func.func @main(%a: tensor<64x32xf32> {_on("x", "")}) -> (tensor<64x32xf32> {_on("x", "")}) {{
  %n = stablehlo.negate %a : tensor<64x32xf32>
  %0 = stablehlo.slice %n [{first}:64, 0:32] : (tensor<64x32xf32>) -> tensor<{amount}x32xf32>
  %1 = stablehlo.slice %n [0:{first}, 0:32] : (tensor<64x32xf32>) -> tensor<{first}x32xf32>
  %2 = stablehlo.concatenate %0, %1, dim = 0
    : (tensor<{amount}x32xf32>, tensor<{first}x32xf32>) -> tensor<64x32xf32>
  return %2 : tensor<64x32xf32>
}}""")
    assert _sent(cost) == [("collective_permute", 32 * 4)]
    assert cost.flops.value == 2 * 16 * 32


@pytest.mark.parametrize(("low", "high", "per_element"), [(1, 1, 5), (0, 2, 3)])
def test_padding_is_masked_in_shards_with_their_halos(low, high, per_element):
    """Of 16 + 2 rows the place is computed, compared with the bounds that have padding, and selected by."""
    cost = _cost(f"""
func.func @main(%a: tensor<64x32xf32> {_on("x", "")}) -> (tensor<64x32xf32> {_on("x", "")}) {{
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = "stablehlo.reduce_window"(%a, %zero) <{{padding = dense<[[{low}, {high}], [0, 0]]> : tensor<2x2xi64>,
      window_dimensions = array<i64: 3, 1>}}> ({{
    ^bb0(%x: tensor<f32>, %y: tensor<f32>):
      %1 = stablehlo.add %x, %y : tensor<f32>
      stablehlo.return %1 : tensor<f32>
  }}) : (tensor<64x32xf32>, tensor<f32>) -> tensor<64x32xf32>
  return %0 : tensor<64x32xf32>
}}""")
    assert cost.flops.value == 2 * 16 * 32 + per_element * 18 * 32


def test_shards_of_a_cumulative_sum_are_gathered_without_a_mask():
    """Its windows reach over all 64 rows: for 16 x 32 elements of a device 63 others are added each."""
    cost = _cost(f"""
func.func @main(%a: tensor<64x32xf32> {_on("x", "")}) -> (tensor<64x32xf32> {_on("x", "")}) {{
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = "stablehlo.reduce_window"(%a, %zero) <{{padding = dense<[[63, 0], [0, 0]]> : tensor<2x2xi64>,
      window_dimensions = array<i64: 64, 1>}}> ({{
    ^bb0(%x: tensor<f32>, %y: tensor<f32>):
      %1 = stablehlo.add %x, %y : tensor<f32>
      stablehlo.return %1 : tensor<f32>
  }}) : (tensor<64x32xf32>, tensor<f32>) -> tensor<64x32xf32>
  return %0 : tensor<64x32xf32>
}}""")
    assert cost.flops.value == 63 * 16 * 32


@pytest.mark.parametrize(
    ("rows", "kinds", "sorted_elements"), [(64, ["all_to_all", "all_to_all"], 16 * 64), (3, ["all_gather"], 3 * 64)]
)
def test_a_sort_along_a_sharded_dimension_divides_another_one(rows, kinds, sorted_elements):
    """The axis moves to the rows where it divides them; otherwise each device sorts everything."""
    cost = _cost(f"""
func.func @main(%a: tensor<{rows}x64xf32> {_on("", "x")}) -> (tensor<{rows}x64xf32> {_on("", "x")}) {{
  %0 = "stablehlo.sort"(%a) <{{dimension = 1 : i64}}> ({{
    ^bb0(%x: tensor<f32>, %y: tensor<f32>):
      %1 = stablehlo.compare LT, %x, %y : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %1 : tensor<i1>
  }}) : (tensor<{rows}x64xf32>) -> tensor<{rows}x64xf32>
  return %0 : tensor<{rows}x64xf32>
}}""")
    assert [kind for kind, _ in _sent(cost)] == kinds
    assert cost.flops.value == sorted_elements * (sorted_elements - 1).bit_length()


@pytest.mark.parametrize(("updates", "is_summed"), [(64, False), (4096, True)])
def test_a_scatter_takes_the_way_of_less_memory(updates, is_summed):
    """Few updates are gathered and written into parts of the operand; of many ones each device sums its own."""
    cost = _cost(f"""
func.func @main(%t: tensor<1024x8xf32> {_on("x", "y")}, %i: tensor<{updates}x1xi32> {_on("x", "")},
                %u: tensor<{updates}x8xf32> {_on("x", "y")}) -> (tensor<1024x8xf32> {_on("x", "y")}) {{
  %0 = "stablehlo.scatter"(%t, %i, %u) <{{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1],
      inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}}> ({{
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %1 = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %1 : tensor<f32>
  }}) : (tensor<1024x8xf32>, tensor<{updates}x1xi32>, tensor<{updates}x8xf32>) -> tensor<1024x8xf32>
  return %0 : tensor<1024x8xf32>
}}""")
    assert any(kind == "all_reduce" for kind, _ in _sent(cost)) == is_summed
    if not is_summed:
        assert updates * 4 <= cost.flops.value <= updates * 5


def test_random_bits_are_made_as_a_whole_and_sliced():
    """Each device makes all 64 x 128 words of 37.25 operations, and negates its 16 x 128."""
    cost = _cost(f"""
func.func @main(%s: tensor<2xui64>) -> (tensor<64x128xf32> {_on("x", "")}) {{
  %state, %bits = stablehlo.rng_bit_generator %s, algorithm = DEFAULT
    : (tensor<2xui64>) -> (tensor<2xui64>, tensor<64x128xui32>)
  %0 = stablehlo.convert %bits : (tensor<64x128xui32>) -> tensor<64x128xf32>
  return %0 : tensor<64x128xf32>
}}""")
    assert cost.flops.value == 37.25 * 64 * 128 + 16 * 128


def test_vectors_that_are_compared_in_pairs_are_gathered_once():
    """Of the pairs a device has its rows; the columns are all 256 elements, of which 192 come from 3 others."""
    cost = _cost(f"""
func.func @main(%x: tensor<256xf32> {_on("x")}) -> (tensor<256x256xf32> {_on("x", "")}) {{
  %rows = stablehlo.broadcast_in_dim %x, dims = [0] : (tensor<256xf32>) -> tensor<256x256xf32>
  %row = stablehlo.broadcast_in_dim %x, dims = [1] : (tensor<256xf32>) -> tensor<1x256xf32>
  %columns = stablehlo.broadcast_in_dim %row, dims = [0, 1] : (tensor<1x256xf32>) -> tensor<256x256xf32>
  %0 = stablehlo.subtract %rows, %columns : tensor<256x256xf32>
  return %0 : tensor<256x256xf32>
}}""")
    assert _sent(cost) == [("all_gather", 4 * 192)]


@pytest.mark.parametrize(("operand", "sent"), [("%x", [("all_to_all", 3 * 4 * 64 * 256 // 4)]), ("%s", [])])
def test_a_broadcast_tensor_is_moved_and_a_broadcast_number_made_again(operand, sent):
    """Columns that are divided by column are divided by row for a difference with rows."""
    columns, type_ = _on("", "x").replace("<@mesh", "_per_value<[<@mesh", 1).replace("]>}", "]>]>}"), "tensor<256xf32>"
    cost = _cost(f"""
func.func @main(%x: {type_} {_on("x")}, %s: tensor<f32>) -> (tensor<256x256xf32> {_on("x", "")}) {{
  %rows = stablehlo.broadcast_in_dim %x, dims = [0] : ({type_}) -> tensor<256x256xf32>
  %columns = stablehlo.broadcast_in_dim {operand}, dims = [{1 if operand == "%x" else ""}] {columns}
    : ({type_ if operand == "%x" else "tensor<f32>"}) -> tensor<256x256xf32>
  %0 = stablehlo.subtract %rows, %columns : tensor<256x256xf32>
  return %0 : tensor<256x256xf32>
}}""")
    assert _sent(cost) == sent


POOLING = f"""
func.func @main(%a: tensor<64x64xf32> {_on("x", "")}, %s: tensor<32x32xf32>) -> (tensor<64x64xf32> {_on("x", "")}) {{
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = "stablehlo.select_and_scatter"(%a, %s, %zero) <{{window_dimensions = array<i64: 2, 2>,
      window_strides = array<i64: 2, 2>}}> ({{
    ^bb0(%x: tensor<f32>, %y: tensor<f32>):
      %1 = stablehlo.compare GE, %x, %y : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %1 : tensor<i1>
  }}, {{
    ^bb0(%x: tensor<f32>, %y: tensor<f32>):
      %1 = stablehlo.add %x, %y : tensor<f32>
      stablehlo.return %1 : tensor<f32>
  }}) : (tensor<64x64xf32>, tensor<32x32xf32>, tensor<f32>) -> tensor<64x64xf32>
  return %0 : tensor<64x64xf32>
}}"""


def test_the_gradient_of_a_pooling_scatters_what_the_windows_of_a_part_meet():
    """Windows of two lie within a shard: 8 of 32 rows, with 11 operations on each of 3 elements and one addition."""
    cost = _cost(POOLING)
    assert cost.flops.value == 8 * 32 * (3 * 9 + 1)


def test_the_gradient_of_a_pooling_holds_the_places_of_all_elements():
    """Two indices per element, and of each window a value and two indices, besides operands and result."""
    cost = _cost(POOLING)
    elements, windows = 16 * 64, 8 * 32
    arguments_and_result = 2 * 4 * elements + 4 * 32 * 32
    assert cost.peak_bytes.value == arguments_and_result + 4 * (2 * elements + 3 * windows)


def test_a_matrix_stays_as_it_is_divided_where_the_result_of_its_product_lies_elsewhere():
    """Only vectors move: 128 elements are summed over 2 devices, permuted, and gathered to the 256 of a device."""
    cost = _cost(f"""
func.func @main(%a: tensor<512x512xf32> {_on("x", "y")}, %v: tensor<512xf32> {_on("y")})
    -> (tensor<512xf32> {_on("y")}) {{
  %0 = stablehlo.dot_general %a, %v, contracting_dims = [1] x [0]
    {{sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{{"y"}}]>]>}}
    : (tensor<512x512xf32>, tensor<512xf32>) -> tensor<512xf32>
  return %0 : tensor<512xf32>
}}""")
    assert ("all_reduce", 512) in _sent(cost)
    assert max(sent for _, sent in _sent(cost)) <= 1024
    assert cost.flops.value == 2 * 128 * 256 + 128


def test_a_slice_sends_all_between_the_bound_of_a_shard_and_what_the_neighbour_reads():
    """Of the first 64 rows the second device gets 32, which begin 64 from the bound: sliced, sent and joined."""
    cost = _cost(f"""
func.func @main(%a: tensor<192x32xf32> {_on("y", "")}) -> (tensor<64x32xf32> {_on("y", "")}) {{
  %0 = stablehlo.slice %a [0:64, 0:32] : (tensor<192x32xf32>) -> tensor<64x32xf32>
  return %0 : tensor<64x32xf32>
}}""")
    assert _sent(cost) == [("collective_permute", 64 * 32 * 4)]
    assert cost.memory_traffic_bytes.value == 5 * 64 * 32 * 4 + 2 * 32 * 32 * 4


def test_a_kernel_reads_the_slices_of_a_tensor_besides_the_whole():
    """A sum of a tensor and its rotation reads it twice, as XLA counts slices apart from other uses."""
    cost = _cost("""
func.func @main(%a: tensor<64x32xf32>) -> tensor<64x32xf32> {
  %0 = stablehlo.slice %a [1:64, 0:32] : (tensor<64x32xf32>) -> tensor<63x32xf32>
  %1 = stablehlo.slice %a [0:1, 0:32] : (tensor<64x32xf32>) -> tensor<1x32xf32>
  %2 = stablehlo.concatenate %0, %1, dim = 0 : (tensor<63x32xf32>, tensor<1x32xf32>) -> tensor<64x32xf32>
  %3 = stablehlo.add %a, %2 : tensor<64x32xf32>
  return %3 : tensor<64x32xf32>
}""")
    assert cost.memory_traffic_bytes.value == 3 * 64 * 32 * 4


def test_an_operand_of_a_product_that_a_function_returns_is_copied_with_its_batch_dimensions_first():
    """A cache is updated in place and returned; the product reads a copy of it."""
    cost = _cost("""
func.func @main(%c: tensor<2x128x4x8xf32> {tf.aliasing_output = 0 : i32}, %q: tensor<2x4x16x8xf32>,
    %k: tensor<2x1x4x8xf32>, %i: tensor<i32>) -> (tensor<2x128x4x8xf32>, tensor<2x4x16x128xf32>) {
  %z = stablehlo.constant dense<0> : tensor<i32>
  %0 = stablehlo.dynamic_update_slice %c, %k, %z, %i, %z, %z : (tensor<2x128x4x8xf32>, tensor<2x1x4x8xf32>,
    tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<2x128x4x8xf32>
  %1 = stablehlo.dot_general %q, %0, batching_dims = [0, 1] x [0, 2], contracting_dims = [3] x [3]
    : (tensor<2x4x16x8xf32>, tensor<2x128x4x8xf32>) -> tensor<2x4x16x128xf32>
  return %0, %1 : tensor<2x128x4x8xf32>, tensor<2x4x16x128xf32>
}""")
    cache, query, scores, key = (4 * size for size in (2 * 128 * 4 * 8, 2 * 4 * 16 * 8, 2 * 4 * 16 * 128, 2 * 4 * 8))
    assert cost.memory_traffic_bytes.value == pytest.approx(3 * cache + query + scores + 2 * key, abs=32)


_PRODUCT = """
sdy.mesh @mesh = <["x"=8]>
func.func @main(%a: tensor<64x128xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>},
                %b: tensor<128xNxf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>},
                %c: tensor<64xNxf32> {sdy.sharding = #sdy.sharding<@mesh, [{ROWS}, {}]>}) -> RESULTS {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
    : (tensor<64x128xf32>, tensor<128xNxf32>) -> tensor<64xNxf32>
BODY
}"""


def _product(body, results, columns, rows=""):
    text = _PRODUCT.replace("BODY", body).replace("RESULTS", results).replace("ROWS", rows)
    return Session.open(text.replace("N", str(columns))).evaluate(profile="xla-cpu", partitioner="xla").cost


def test_equal_sums_over_devices_stay_apart():
    """Each of them sends 14 KiB, and what is computed from them is computed twice."""
    body = """
  %1 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
    : (tensor<64x128xf32>, tensor<128xNxf32>) -> tensor<64xNxf32>
  %2 = stablehlo.sine %0 : tensor<64xNxf32>
  %3 = stablehlo.sine %1 : tensor<64xNxf32>
  %4 = stablehlo.add %2, %c : tensor<64xNxf32>
  %5 = stablehlo.multiply %3, %c : tensor<64xNxf32>
  return %4, %5 : tensor<64xNxf32>, tensor<64xNxf32>"""
    cost = _product(body, "(tensor<64xNxf32>, tensor<64xNxf32>)", 32)
    assert _sent(cost) == [("all_reduce", 14 * 1024)] * 2
    assert cost.transcendentals.value == 2 * 64 * 32


@pytest.mark.parametrize(
    ("body", "kilobytes", "peak"),
    [
        ("  return %0 : tensor<64xNxf32>", 88, 64),
        ("  %1 = stablehlo.add %0, %c : tensor<64xNxf32>\n  return %1 : tensor<64xNxf32>", 91, 64),
    ],
)
def test_an_all_reduce_in_place_of_a_reduce_scatter_writes_the_whole_sum(body, kilobytes, peak):
    """A sum of 24 KiB is read and written; a kernel of its own, or the addition, slices the 3 KiB of a device."""
    rows = '"x"'
    results = f"(tensor<64xNxf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{{rows}}}, {{}}]>}})"
    cost = _product(body, results, 96, rows)
    assert _sent(cost) == [("all_reduce", 42 * 1024)]
    assert cost.memory_traffic_bytes.value == kilobytes * 1024
    assert cost.peak_bytes.value == peak * 1024


@pytest.mark.parametrize(
    ("size", "runs", "moved"),
    [(17, 515, 696), (48, 776, 836), (100, 1840, 2740), (256, 4351, 4424), (300, 5379, 7900), (4096, 69887, 70984)],
)
def test_a_cumulative_sum_scans_parts_of_16_elements_and_then_the_parts(size, runs, moved):
    """A part is scanned by 240 runs of the region, and the sums of few parts by as many runs as their square less one.

    XLA reads a constant of 4 bytes once more per level.
    """
    cost = _cost(f"""
func.func @main(%a: tensor<4x{size}xf32> {_on("x", "")}) -> (tensor<4x{size}xf32> {_on("x", "")}) {{
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = "stablehlo.reduce_window"(%a, %zero) <{{padding = dense<[[0, 0], [{size - 1}, 0]]> : tensor<2x2xi64>,
      window_dimensions = array<i64: 1, {size}>}}> ({{
    ^bb0(%x: tensor<f32>, %y: tensor<f32>):
      %1 = stablehlo.add %x, %y : tensor<f32>
      stablehlo.return %1 : tensor<f32>
  }}) : (tensor<4x{size}xf32>, tensor<f32>) -> tensor<4x{size}xf32>
  return %0 : tensor<4x{size}xf32>
}}""")
    assert (cost.flops.value, cost.memory_traffic_bytes.value) == (runs, moved)
