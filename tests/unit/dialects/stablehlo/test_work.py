"""The work of StableHLO ops, against what XLA's analysis says of the same ops."""

from __future__ import annotations

import pytest

pytest.importorskip("jaxlib", reason="the frontend is jaxlib's")

from shardy_py.cost.session import Session


def _cost(text):
    return Session.open(text).evaluate().cost


def _of(signature, op):
    return _cost(f"func.func @main({signature}) {{\n{op}\n}}\n")


def _convolution(strides="1, 1", low=1, input_dilation="1, 1", kernel_dilation="1, 1", size=16):
    result = f"tensor<2x{size}x{size}x16xf32>"
    window = f"stride = [{strides}], pad = [[{low}, {low}], [{low}, {low}]], lhs_dilate = [{input_dilation}]"
    text = f"""
  %0 = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
    window = {{{window}, rhs_dilate = [{kernel_dilation}]}}
    {{batch_group_count = 1 : i64, feature_group_count = 1 : i64}}
    : (tensor<2x16x16x8xf32>, tensor<3x3x8x16xf32>) -> {result}
  return %0 : {result}"""
    return _of(f"%x: tensor<2x16x16x8xf32>, %k: tensor<3x3x8x16xf32>) -> ({result}", text).flops.value


def test_a_convolution_counts_the_products_that_are_not_with_padding():
    """XLA says 1083392 for 16x16 with a border of padding, and 991232 with holes in the kernel."""
    assert _convolution() == 1083392
    assert _convolution(kernel_dilation="2, 2", low=2) == 991232


def _grouped(features, profile):
    text = f"""
func.func @main(%x: tensor<8x8x8x4xf32>, %k: tensor<3x3x4x{features}xf32>) -> tensor<1x8x8x{features}xf32> {{
  %0 = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
    window = {{pad = [[1, 1], [1, 1]]}} {{batch_group_count = 8 : i64, feature_group_count = 1 : i64}}
    : (tensor<8x8x8x4xf32>, tensor<3x3x4x{features}xf32>) -> tensor<1x8x8x{features}xf32>
  return %0 : tensor<1x8x8x{features}xf32>
}}"""
    return Session.open(text).evaluate(profile=profile).cost


def test_groups_of_the_batch_with_a_feature_each_become_one_group_on_cpus():
    """XLA says 259584 operations, 76932 bytes and a peak of 27776 for 8 groups; with two features each they stay."""
    cost = _grouped(8, "xla-cpu")
    assert (cost.flops.value, cost.memory_traffic_bytes.value, cost.peak_bytes.value) == (259584, 76928, 27776)
    assert _grouped(16, "xla-cpu").flops.value == 61952
    assert _grouped(8, "xla-gpu").flops.value == 30976


def test_a_lookup_computes_nothing_and_reads_what_it_returns():
    """Of a table of 128x64 numbers four rows are read, and four written, besides the indices."""
    cost = _of(
        "%t: tensor<128x64xf32>, %i: tensor<4x1xi32>) -> (tensor<4x64xf32>",
        """
  %0 = "stablehlo.gather"(%t, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1],
    collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>,
    slice_sizes = array<i64: 1, 64>}> : (tensor<128x64xf32>, tensor<4x1xi32>) -> tensor<4x64xf32>
  return %0 : tensor<4x64xf32>""",
    )
    assert (cost.flops.value, cost.total_flops.value) == (0, 0)
    assert cost.memory_traffic_bytes.value == 2 * 4 * 64 * 4 + 4 * 4


def test_an_update_in_place_writes_what_it_changes_and_a_kept_operand_is_copied():
    """Of 64 rows one is written; where the operand is not donated, all of it is read and written before."""
    text = """
  %0 = stablehlo.dynamic_update_slice %x, %u, %i, %i
    : (tensor<64x128xf32>, tensor<1x128xf32>, tensor<i32>, tensor<i32>) -> tensor<64x128xf32>
  return %0 : tensor<64x128xf32>"""
    signature = "%x: tensor<64x128xf32>{0}, %u: tensor<1x128xf32>, %i: tensor<i32>) -> (tensor<64x128xf32>"
    donated = _of(signature.format(" {tf.aliasing_output = 0 : i32}"), text)
    kept = _of(signature.format(""), text)
    assert donated.memory_traffic_bytes.value == 2 * 512 + 4
    assert kept.memory_traffic_bytes.value == donated.memory_traffic_bytes.value + 2 * 64 * 512
    assert donated.peak_bytes.value == 64 * 512 + 512 + 4


def test_transcendental_operations_stand_apart():
    """A logistic is a transcendental operation and three others."""
    cost = _of(
        "%x: tensor<8xf32>) -> (tensor<8xf32>",
        "  %0 = stablehlo.logistic %x : tensor<8xf32>\n  return %0 : tensor<8xf32>",
    )
    assert (cost.flops.value, cost.transcendentals.value) == (24, 8)


def test_a_window_over_shards_is_sent_from_the_neighbours():
    """Each of four devices has 4 of 16 rows of 8 numbers, and gets one row from either side."""
    cost = _cost("""
sdy.mesh @mesh = <["a"=4]>
func.func @main(%x: tensor<1x16x8x1xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"a"}, {}, {}]>},
                %k: tensor<3x3x1x1xf32>)
    -> (tensor<1x16x8x1xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"a"}, {}, {}]>}) {
  %0 = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
    window = {pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
    : (tensor<1x16x8x1xf32>, tensor<3x3x1x1xf32>) -> tensor<1x16x8x1xf32>
  return %0 : tensor<1x16x8x1xf32>
}
""")
    assert [(item.kind, item.bytes) for item in cost.transfers] == [("collective_permute", 32)] * 2


@pytest.mark.parametrize(
    ("given", "made", "per_part"),
    [("16xf32", "16x4xui8", 6), ("16x4xui8", "16xf32", 5), ("64xf32", "64xi32", 0)],
)
def test_words_are_shifted_into_parts_and_parts_into_words(given, made, per_part):
    """XLA says 6 for each of 64 bytes of words, 5 for each byte that is joined, and nothing for the same width."""
    text = f"""
  %0 = stablehlo.bitcast_convert %x : (tensor<{given}>) -> tensor<{made}>
  return %0 : tensor<{made}>"""
    assert _of(f"%x: tensor<{given}>) -> (tensor<{made}>", text).flops.value == per_part * 64
