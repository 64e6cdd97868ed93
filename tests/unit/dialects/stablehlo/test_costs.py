"""Costs of ops: the runs of loops, the devices of collectives, and work, against what XLA says of the same ops."""

from __future__ import annotations

import pytest

from shardy_dialects.stablehlo.control_flow.cost import trip_count
from shardy_py.cost.session import Session
from shardy_py.frontends.mlir import import_module, parse_module
from shardy_py.plugins import Registry

pytest.importorskip("jaxlib", reason="the frontend is jaxlib's")

LOOP = """
func.func @main(%n: tensor<i32>) -> tensor<i32> {{
  %start = stablehlo.constant dense<{start}> : tensor<i32>
  %bound = stablehlo.constant dense<{bound}> : tensor<i32>
  %step = stablehlo.constant dense<{step}> : tensor<i32>
  %0:2 = stablehlo.while(%i = %start, %b = %bound) : tensor<i32>, tensor<i32>
  cond {{
    %p = stablehlo.compare {compare} : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  }} do {{
    %j = stablehlo.{change} : tensor<i32>
    stablehlo.return %j, {next} : tensor<i32>, tensor<i32>
  }}
  return %0#0 : tensor<i32>
}}
"""


def _find(text, name):
    return next(op for op in import_module(parse_module(text)).walk() if op.name == name)


def _trips(compare, *, start=0, bound=5, step=1, change="add %i, %step", next="%b"):
    values = {"compare": compare, "start": start, "bound": bound, "step": step, "change": change, "next": next}
    return trip_count(_find(LOOP.format(**values), "stablehlo.while"))


def _simulated(test, start, bound, step):
    runs = 0
    while test(start, bound):
        start, runs = start + step, runs + 1
        if runs > 100:
            return None
    return runs


@pytest.mark.parametrize("step", [-3, -1, 1, 2, 3])
@pytest.mark.parametrize(("start", "bound"), [(0, 5), (5, 0), (2, 2), (-4, 4), (0, 6)])
@pytest.mark.parametrize(
    ("direction", "test"),
    [
        ("LT", lambda a, b: a < b),
        ("LE", lambda a, b: a <= b),
        ("GT", lambda a, b: a > b),
        ("GE", lambda a, b: a >= b),
        ("NE", lambda a, b: a != b),
    ],
)
def test_a_counting_loop_runs_as_often_as_a_simulation_says(direction, test, start, bound, step):
    """For every direction, start, bound and step; a loop that never ends has no number."""
    expected = _simulated(test, start, bound, step)
    assert _trips(f"{direction}, %i, %bound", start=start, bound=bound, step=step) == expected


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"compare": "GT, %bound, %i"}, 5),  # the other way around
        ({"compare": "LT, %i, %b"}, 5),  # the bound is carried along unchanged
        ({"compare": "LT, %i, %bound", "change": "add %step, %i", "step": 2}, 3),
        ({"compare": "GT, %i, %bound", "change": "subtract %i, %step", "start": 5, "bound": 0}, 5),
        ({"compare": "LT, %i, %n"}, None),  # the bound is not known
        ({"compare": "LT, %i, %b", "next": "%j"}, None),  # the bound changes
        ({"compare": "LT, %i, %bound", "change": "multiply %i, %step"}, None),
        ({"compare": "LT, %i, %bound", "change": "subtract %step, %i"}, None),
        ({"compare": "LT, %i, %bound", "change": "add %b, %step"}, None),
        ({"compare": "LT, %n, %bound"}, None),  # what is compared is not carried
        ({"compare": "EQ, %i, %bound"}, None),
        ({"compare": "LT, %i, %bound", "step": 0}, None),
    ],
)
def test_a_loop_counts_only_where_constants_say_so(options, expected):
    """The counter starts, ends and steps by constants; nothing else is guessed."""
    assert _trips(**options) == expected


def test_the_condition_runs_once_more_than_the_body():
    """It is asked before each run, and once to end the loop."""
    text = LOOP.format(compare="LT, %i, %bound", start=0, bound=5, step=1, change="add %i, %step", next="%b")
    op = _find(text, "stablehlo.while")
    assert Registry.from_entry_points().get_cost(op).get_region_runs(op) == (6, 5)


REDUCE = """
sdy.mesh @mesh = <["x"=2, "y"=2, "z"=3]>
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = "stablehlo.all_reduce"(%x) <{replica_groups = GROUPS,
      channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
"""
_AXIS = "#stablehlo.axis_ref<name = {}>"
_MESH_GROUPS = "#stablehlo.replica_group_mesh_axes<mesh = @mesh, axes = [{}]>"


@pytest.mark.parametrize(
    ("groups", "expected"),
    [
        ("dense<[[0, 2], [1, 3]]> : tensor<2x2xi64>", (0, 2)),
        ("dense<[[4, 0, 2], [1, 3, -1]]> : tensor<2x3xi64>", (4, 0, 2)),
        (_MESH_GROUPS.format(_AXIS.format('"y"')), (0, 3)),
        (_MESH_GROUPS.format(_AXIS.format('"x"') + ", " + _AXIS.format('"z"')), (0, 1, 2, 6, 7, 8)),
    ],
)
def test_a_collective_goes_over_its_first_group(groups, expected):
    """Groups are lists of devices, or axes of a mesh whose devices are numbered row by row."""
    op = _find(REDUCE.replace("GROUPS", groups), "stablehlo.all_reduce")
    actual = Registry.from_entry_points().get_cost(op).get_collective(op)
    assert (actual.kind, actual.group) == ("all_reduce", expected)


def test_a_permutation_goes_over_all_devices_it_names():
    """Sources and targets take part."""
    text = """
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = "stablehlo.collective_permute"(%x) {source_target_pairs = dense<[[0, 1], [1, 5]]> : tensor<2x2xi64>}
    : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
"""
    op = _find(text, "stablehlo.collective_permute")
    assert Registry.from_entry_points().get_cost(op).get_collective(op).group == (0, 1, 5)


pytest.importorskip("jaxlib", reason="the frontend is jaxlib's")


def _cost(text):
    return Session.open(text).evaluate(partitioner="xla").cost


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
    return Session.open(text).evaluate(profile=profile, partitioner="xla").cost


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
    named = _of(signature.format(""), text)
    assert donated.memory_traffic_bytes.value == 2 * 512 + 4
    assert named.memory_traffic_bytes.value == donated.memory_traffic_bytes.value + 2 * 64 * 512
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
    ("source", "target", "per_part"),
    [("16xf32", "16x4xui8", 6), ("16x4xui8", "16xf32", 5), ("64xf32", "64xi32", 0)],
)
def test_words_are_shifted_into_parts_and_parts_into_words(source, target, per_part):
    """XLA says 6 for each of 64 bytes of words, 5 for each byte that is joined, and nothing for the same width."""
    text = f"""
  %0 = stablehlo.bitcast_convert %x : (tensor<{source}>) -> tensor<{target}>
  return %0 : tensor<{target}>"""
    assert _of(f"%x: tensor<{source}>) -> (tensor<{target}>", text).flops.value == per_part * 64
