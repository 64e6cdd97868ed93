"""What XLA's partitioner and its simplifications add to, or take from, the work of a program."""

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


def test_the_error_function_is_transcendental():
    """Each of the 16 elements of a shard is one transcendental operation, and no other one."""
    cost = _cost(f"""
func.func @main(%x: tensor<8x8xf32> {_on("x", "")}) -> (tensor<8x8xf32> {_on("x", "")}) {{
  %0 = chlo.erf %x : tensor<8x8xf32> -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}}""")
    assert (cost.flops.value, cost.transcendentals.value) == (0, 16)


def test_a_product_without_a_sum_is_a_multiplication():
    """The outer product of vectors takes one operation per element; with a sum over one element, too."""
    outer = _cost("""
func.func @main(%x: tensor<8xf32>, %y: tensor<16xf32>) -> tensor<8x16xf32> {
  %0 = stablehlo.dot_general %x, %y, contracting_dims = [] x [] : (tensor<8xf32>, tensor<16xf32>) -> tensor<8x16xf32>
  return %0 : tensor<8x16xf32>
}""")
    assert outer.flops.value == 8 * 16


def test_the_padding_of_uneven_shards_is_masked_before_a_reduction():
    """Of 30 rows each of 4 devices has 8: three operations mask each element, one sums, and the all-reduce adds 18."""
    text = f"""
func.func @main(%x: tensor<ROWSx18xf32> {_on("", "")}) -> (tensor<18xf32> {_on("")}) {{
  %part = sdy.sharding_constraint %x <@mesh, [{{"x"}}, {{}}]> : tensor<ROWSx18xf32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reduce(%part init: %zero) applies stablehlo.add across dimensions = [0]
    : (tensor<ROWSx18xf32>, tensor<f32>) -> tensor<18xf32>
  return %0 : tensor<18xf32>
}}"""
    even, uneven = (_cost(text.replace("ROWS", rows)).flops.value for rows in ("32", "30"))
    assert even == 7 * 18 + 18
    assert uneven == even + 3 * 8 * 18


SCATTER = f"""
func.func @main(%t: tensor<1000x64xf32> {_on("", "")}, %i: tensor<512x1xi32> {_on("x", "")},
                %u: tensor<512x64xf32> {_on("x", "")}) -> (tensor<1000x64xf32> {_on("", "")}) {{
  TABLE
  %0 = "stablehlo.scatter"(%s, %i, %u) <{{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1],
      inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}}> ({{
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %1 = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %1 : tensor<f32>
  }}) : (tensor<1000x64xf32>, tensor<512x1xi32>, tensor<512x64xf32>) -> tensor<1000x64xf32>
  return %0 : tensor<1000x64xf32>
}}"""
SUMMED = 1000 * 64
ADDED = 128 * 64


@pytest.mark.parametrize(
    ("table", "masked"),
    [
        ("%s = stablehlo.negate %t : tensor<1000x64xf32>", 2 * SUMMED),
        ("%s = stablehlo.constant dense<0.0> : tensor<1000x64xf32>", 0),
    ],
)
def test_devices_that_scatter_parts_of_the_updates_start_from_zeros_but_one(table, masked):
    """A selection per element of the table, besides its negation; a table of zeros needs none."""
    cost = _cost(SCATTER.replace("TABLE", table))
    assert cost.flops.value == masked + ADDED + SUMMED


WHOLE = {
    "stablehlo.fft": (
        f"""
func.func @main(%x: tensor<64x256xcomplex<f32>> {_on("x", "")}) -> (tensor<64x256xcomplex<f32>> {_on("x", "")}) {{
  %0 = stablehlo.fft %x, type = FFT, length = [256] : (tensor<64x256xcomplex<f32>>) -> tensor<64x256xcomplex<f32>>
  return %0 : tensor<64x256xcomplex<f32>>
}}""",
        3 * 16 * 256 * 8,
    ),
    "chlo.top_k": (
        f"""
func.func @main(%x: tensor<64x256xf32> {_on("x", "")}) -> (tensor<64x8xf32> {_on("x", "")},
                                                          tensor<64x8xi32> {_on("x", "")}) {{
  %0:2 = chlo.top_k(%x, k = 8) : tensor<64x256xf32> -> (tensor<64x8xf32>, tensor<64x8xi32>)
  return %0#0, %0#1 : tensor<64x8xf32>, tensor<64x8xi32>
}}""",
        3 * 16 * 256 * 4,
    ),
}


@pytest.mark.parametrize("name", WHOLE)
def test_what_xla_does_not_partition_gets_whole_operands(name):
    """Each device gets the rows of the other three; of what it computes it keeps its own, which sends nothing."""
    text, gathered = WHOLE[name]
    assert {item.kind: item.bytes for item in _cost(text).transfers if item.bytes} == {"all_gather": gathered}


def test_an_all_reduce_of_the_program_adds_each_element_once():
    """Four devices sum what one of them negates."""
    cost = _cost("""
func.func @main(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %0 = sdy.manual_computation(%x) in_shardings=[<@mesh, [{"x"}, {}]>] out_shardings=[<@mesh, [{}, {}]>]
      manual_axes={"x", "y"} (%a: tensor<2x8xf32>) {
    %1 = "stablehlo.all_reduce"(%a) <{replica_groups = dense<[[0, 2, 4, 6], [1, 3, 5, 7]]> : tensor<2x4xi64>}> ({
      ^bb0(%l: tensor<f32>, %r: tensor<f32>):
        %2 = stablehlo.add %l, %r : tensor<f32>
        stablehlo.return %2 : tensor<f32>
    }) : (tensor<2x8xf32>) -> tensor<2x8xf32>
    %3 = stablehlo.concatenate %1, %1, %1, %1, dim = 0
      : (tensor<2x8xf32>, tensor<2x8xf32>, tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<8x8xf32>
    sdy.return %3 : tensor<8x8xf32>
  } : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}""")
    assert cost.flops.value == 2 * 8


TWICE = """
func.func @main(%x: tensor<8x8xf32>, %y: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>) {
  %0 = stablehlo.add %x, %y : tensor<8x8xf32>
  %1 = stablehlo.negate %0 : tensor<8x8xf32>
  BETWEEN
  %3 = stablehlo.multiply %0, %2 : tensor<8x8xf32>
  return %1, %3 : tensor<8x8xf32>, tensor<8x8xf32>
}"""


@pytest.mark.parametrize(
    ("between", "sums"),
    [
        ("%2 = stablehlo.abs %0 : tensor<8x8xf32>", 2),
        # The product waits for what no kernel contains.
        ("%2 = stablehlo.dot %0, %0 : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>", 1),
    ],
)
def test_a_cheap_op_is_computed_in_each_kernel_where_nothing_stored_stands_between(between, sums):
    """Two kernels need the sum: both compute it, unless a stored value stands between it and one of them."""
    cost = _cost(TWICE.replace("BETWEEN", between))
    elements = 8 * 8
    others = {2: 3, 1: 2 + 2 * 8}[sums]
    assert cost.flops.value == elements * (sums + others)


@pytest.mark.parametrize(
    ("argument_and_result", "copies"),
    [("", 2), ("{tf.aliasing_output = 0 : i32}", 1)],
)
def test_an_argument_that_is_a_result_is_copied_unless_it_is_donated(argument_and_result, copies):
    """The same 256 bytes are read and written for each of two results, or for the second one only."""
    cost = _cost(f"""
func.func @main(%x: tensor<8x8xf32> {argument_and_result}) -> (tensor<8x8xf32>, tensor<8x8xf32>) {{
  return %x, %x : tensor<8x8xf32>, tensor<8x8xf32>
}}""")
    assert cost.memory_traffic_bytes.value == copies * 2 * 256


def _sent(cost):
    return [(item.kind, item.bytes) for item in cost.transfers if item.bytes]


@pytest.mark.parametrize(
    ("rows", "sent"),
    [
        (4096, [("all_gather", 3 * 1024 * 32 * 4)]),
        (8192, [("all_gather", 3 * 1024 * 4), ("all_reduce", 6 * 4096 * 32)]),
    ],
)
def test_a_small_table_is_gathered_and_a_large_one_looked_up_in_parts(rows, sent):
    """What XLA does with a table split along the axis of the indices depends on what takes more memory."""
    cost = _cost(f"""
func.func @main(%t: tensor<{rows}x64xf32> {_on("x", "y")}, %i: tensor<4096x1xi32> {_on("x", "")})
    -> (tensor<4096x64xf32> {_on("x", "y")}) {{
  %0 = "stablehlo.gather"(%t, %i) <{{dimension_numbers = #stablehlo.gather<offset_dims = [1],
      collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 64>}}>
      : (tensor<{rows}x64xf32>, tensor<4096x1xi32>) -> tensor<4096x64xf32>
  return %0 : tensor<4096x64xf32>
}}""")
    assert _sent(cost) == sent


def test_results_of_a_look_up_in_parts_of_a_table_are_divided_along_a_free_axis():
    """The axis of the table does not divide the results that are summed along it; the other one does, in two parts."""
    cost = _cost(f"""
func.func @main(%t: tensor<8192x64xf32> {_on("x", "")}, %i: tensor<4096x1xi32> {_on("x", "")})
    -> (tensor<4096x64xf32> {_on("x", "")}) {{
  %0 = "stablehlo.gather"(%t, %i) <{{dimension_numbers = #stablehlo.gather<offset_dims = [1],
      collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 64>}}>
      : (tensor<8192x64xf32>, tensor<4096x1xi32>) -> tensor<4096x64xf32>
  return %0 : tensor<4096x64xf32>
}}""")
    indices = [("collective_permute", 1024 * 4), ("all_gather", 1024 * 4)]
    assert _sent(cost) == [*indices, ("all_reduce", 6 * 2048 * 64), ("collective_permute", 1024 * 64 * 4)]


@pytest.mark.parametrize(
    ("shape", "axes", "sent"),
    [
        ((8, 6, 16), ("", "", "y"), [("all_to_all", 768), ("all_to_all", 768), ("all_to_all", 1536)]),
        ((8, 6, 16), ("x", "", "y"), [("all_to_all", 192), ("all_to_all", 192), ("all_to_all", 384)]),
        ((3, 5, 16), ("", "", "y"), [("all_gather", 480), ("all_gather", 480)]),
    ],
)
def test_tensors_joined_along_a_sharded_dimension_are_split_along_another_one(shape, axes, sent):
    """The first dimension that the axes divide gets them: parts go there and back; else the tensors are gathered."""
    part_type, joined = (f"tensor<{shape[0]}x{shape[1]}x{size}xf32>" for size in (shape[2], 2 * shape[2]))
    cost = _cost(f"""
func.func @main(%x: {part_type} {_on(*axes)}, %y: {part_type} {_on(*axes)}) -> ({joined} {_on(*axes)}) {{
  %0 = stablehlo.concatenate %x, %y, dim = 2 : ({part_type}, {part_type}) -> {joined}
  return %0 : {joined}
}}""")
    assert _sent(cost) == sent


def test_a_slice_that_ends_far_away_sends_each_part_to_those_that_read_it():
    """The last quarter of 32 columns goes to three other devices, two columns to each."""
    cost = _cost(f"""
func.func @main(%x: tensor<8x32xf32> {_on("", "x")}) -> (tensor<8x8xf32> {_on("", "x")}) {{
  %0 = stablehlo.slice %x [0:8, 24:32] : (tensor<8x32xf32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}}""")
    assert _sent(cost) == [("collective_permute", 8 * 2 * 4)] * 3


@pytest.mark.parametrize(("type_", "bytes_"), [("bf16", 4), ("f8E4M3FN", 2), ("i4", 1), ("f16", 2), ("i8", 1)])
def test_narrow_types_are_sent_in_wider_ones(type_: str, bytes_: int) -> None:
    """Three shards of 2 x 8 elements come in, in the type that the host's instructions have."""
    cost = _cost(f"""
func.func @main(%x: tensor<8x8x{type_}> {_on("x", "")}) -> (tensor<8x8x{type_}> {_on("", "")}) {{
  return %x : tensor<8x8x{type_}>
}}""")
    assert _sent(cost) == [("all_gather", 3 * 2 * 8 * bytes_)]


@pytest.mark.parametrize(
    ("op", "type_", "flops", "transcendentals"),
    [
        ("chlo.lgamma", "f32", 52, 4),
        ("chlo.lgamma", "bf16", 54, 4),
        ("stablehlo.log", "f32", 0, 1),
        ("stablehlo.log", "complex<f32>", 61, 4),
        ("stablehlo.negate", "bf16", 3, 0),
    ],
)
def test_functions_that_xla_expands_count_what_they_become(op, type_, flops, transcendentals):
    """Each of the 64 elements takes the ops of the expansion, and two conversions where it is bf16."""
    tensor = f"tensor<8x8x{type_}>"
    cost = _cost(f"""
func.func @main(%x: {tensor}) -> {tensor} {{
  %0 = {op} %x : {tensor}{f" -> {tensor}" if op.startswith("chlo") else ""}
  return %0 : {tensor}
}}""")
    assert (cost.flops.value, cost.transcendentals.value) == (64 * flops, 64 * transcendentals)


def test_a_branch_that_is_always_taken_costs_what_is_in_it():
    """The addition in the only branch is one kernel with the one behind it: what passes between them is not stored."""
    cost = _cost("""
func.func @main(%x: tensor<8x8xf32>, %i: tensor<i32>) -> tensor<8x8xf32> {
  %0 = "stablehlo.case"(%i) ({
    %1 = stablehlo.add %x, %x : tensor<8x8xf32>
    stablehlo.return %1 : tensor<8x8xf32>
  }) : (tensor<i32>) -> tensor<8x8xf32>
  %2 = stablehlo.multiply %0, %0 : tensor<8x8xf32>
  return %2 : tensor<8x8xf32>
}""")
    assert (cost.flops.value, cost.memory_traffic_bytes.value) == (2 * 64, 2 * 4 * 64)


def test_a_map_runs_its_region_once_per_element():
    """A multiplication and an addition for each of 64 elements, although the map has no rule of its own."""
    cost = _cost("""
func.func @main(%x: tensor<8x8xf32>, %y: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %0 = "stablehlo.map"(%x, %y) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.multiply %a, %b : tensor<f32>
    %2 = stablehlo.add %1, %b : tensor<f32>
    stablehlo.return %2 : tensor<f32>
  }) {dimensions = array<i64: 0, 1>} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}""")
    assert cost.flops.value == 2 * 64
    assert cost.memory_traffic_bytes.value == 3 * 4 * 64
