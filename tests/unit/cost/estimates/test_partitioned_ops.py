"""Ops that Shardy has no rule for, or that XLA's partitioner does not divide: what is sent, and computed, for them.

The numbers are those of XLA:CPU of jaxlib 0.10.2 for the same programs, without operations on single indices.
"""

from __future__ import annotations

import pytest

pytest.importorskip("jaxlib", reason="the frontend is jaxlib's")

from shardy_py.cost.session import Session

MESH = 'sdy.mesh @mesh = <["x"=4, "y"=2]>\n'
MATRIX = "tensor<8x16xf32>"


def _on(*axes):
    dims = ", ".join("{" + (f'"{axis}"' if axis else "") + "}" for axis in axes)
    return f"{{sdy.sharding = #sdy.sharding<@mesh, [{dims}]>}}"


def _cost(body):
    return Session.open(MESH + body).evaluate(profile="xla-cpu", partitioner="xla").cost


def _sent(cost):
    return cost.flops.value, cost.communication_bytes.value


def test_a_product_by_letters_is_computed_on_parts_and_gathered():
    """Each device computes 2 rows and 16 columns; then results are gathered along both dimensions."""
    cost = _cost(f"""
func.func @main(%a: {MATRIX} {_on("x", "")}, %b: tensor<16x32xf32> {_on("", "y")}) -> tensor<8x32xf32> {{
  %0 = "stablehlo.einsum"(%a, %b) {{einsum_config = "ab,bc->ac"}}
      : ({MATRIX}, tensor<16x32xf32>) -> tensor<8x32xf32>
  return %0 : tensor<8x32xf32>
}}""")
    assert _sent(cost) == (1024, 896)


@pytest.mark.parametrize(
    ("left", "right", "flops", "sent"), [(("", "x"), ("", ""), 16384, 6144), (("", ""), ("x", ""), 16384, 3072)]
)
def test_an_operand_that_alone_is_divided_along_the_sum_is_gathered(left, right, flops, sent):
    """Nothing else of the product is divided, so that each device computes all of it."""
    cost = _cost(f"""
func.func @main(%a: tensor<8x256xf32> {_on(*left)}, %b: tensor<256x4xf32> {_on(*right)})
    -> (tensor<8x4xf32> {_on("", "")}) {{
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
      : (tensor<8x256xf32>, tensor<256x4xf32>) -> tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}}""")
    assert _sent(cost) == (flops, sent)


@pytest.mark.parametrize(
    ("axes", "dims", "sent"),
    [(("x", ""), "0", [128]), (("x", ""), "1", []), (("x", "y"), "0, 1", [64]), (("", "y"), "0, 1", [256])],
)
def test_shards_along_reversed_dimensions_change_places(axes, dims, sent):
    """Each device sends its shard once, whatever the number of dimensions."""
    cost = _cost(f"""
func.func @main(%a: {MATRIX} {_on(*axes)}) -> {MATRIX} {{
  %0 = stablehlo.reverse %a, dims = [{dims}] : {MATRIX}
  return %0 : {MATRIX}
}}""")
    assert [item.bytes for item in cost.transfers if item.bytes] == sent
    assert {item.kind for item in cost.transfers if item.bytes} <= {"collective_permute"}


@pytest.mark.parametrize(
    ("size", "start", "sent", "flops"),
    [
        (1, None, 0, 8),
        (4, None, 1536, 0),
        (4, 8, 0, 32),
        (16, 16, 0, 128),
        (16, 8, 1536, 0),
        (32, 0, 1536, 0),
    ],
)
def test_an_update_that_may_reach_several_shards_is_made_on_gathered_rows(size, start, sent, flops):
    """Columns are divided by 4, each part having 16; what is known to be in one part is chosen there."""
    start_value = "%p" if start is None else "%k"
    start_constant = "" if start is None else f"%k = stablehlo.constant dense<{start}> : tensor<i32>"
    cost = _cost(f"""
func.func @main(%a: tensor<16x64xf32> {_on("y", "x")}, %u: tensor<16x{size}xf32> {_on("y", "")}, %p: tensor<i32>)
    -> (tensor<16x64xf32> {_on("y", "x")}) {{
  %i = stablehlo.constant dense<0> : tensor<i32>
  {start_constant}
  %r = stablehlo.dynamic_update_slice %a, %u, %i, {start_value}
      : (tensor<16x64xf32>, tensor<16x{size}xf32>, tensor<i32>, tensor<i32>) -> tensor<16x64xf32>
  return %r : tensor<16x64xf32>
}}""")
    assert _sent(cost) == (flops, sent)


@pytest.mark.parametrize(
    ("left", "right", "result", "flops", "sent"),
    [
        (("x", ""), ("x", ""), ("", "x"), 128, 96),
        (("x", ""), ("x", ""), ("", ""), 32, 384),
        (("x", ""), ("x", ""), ("x", "y"), 32, 0),
        (("", ""), ("", ""), ("x", "y"), 128, 0),
        (("x", ""), ("", "y"), ("x", "y"), 16, 0),
    ],
)
def test_operands_that_are_divided_alike_are_combined_before_the_result_moves(left, right, result, flops, sent):
    """One tensor is moved instead of two; operands that differ are brought to the sharding of the result.

    What an all-to-all sends is computed for each of its slices.
    """
    dims = _on(*result).removeprefix("{sdy.sharding = #sdy.sharding").removesuffix("}")
    cost = _cost(f"""
func.func @main(%a: {MATRIX} {_on(*left)}, %b: {MATRIX} {_on(*right)}) -> ({MATRIX} {_on(*result)}) {{
  %0 = stablehlo.multiply %a, %b {{sdy.sharding = #sdy.sharding_per_value<[{dims}]>}} : {MATRIX}
  return %0 : {MATRIX}
}}""")
    assert _sent(cost) == (flops, sent)


def test_a_broadcast_is_divided_as_its_result():
    """The 16 elements are gathered, and not the 1024 that are made of them."""
    cost = _cost(f"""
func.func @main(%a: tensor<16xf32> {_on("x")}) -> (tensor<16x64xf32> {_on("", "x")}) {{
  %0 = stablehlo.broadcast_in_dim %a, dims = [0] : (tensor<16xf32>) -> tensor<16x64xf32>
  return %0 : tensor<16x64xf32>
}}""")
    assert _sent(cost) == (0, 48)


def test_a_sum_by_letters_adds_all_but_one():
    """Of each row of 16 elements there are 15 additions; XLA takes no such op."""
    cost = _cost(f"""
func.func @main(%a: {MATRIX}) -> tensor<8xf32> {{
  %0 = "stablehlo.unary_einsum"(%a) {{einsum_config = "ab->a"}} : ({MATRIX}) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}}""")
    assert _sent(cost) == (120, 0)


def test_a_map_is_computed_on_whole_tensors():
    """Its operand is gathered first."""
    cost = _cost(f"""
func.func @main(%a: {MATRIX} {_on("x", "y")}, %b: {MATRIX}) -> {MATRIX} {{
  %0 = "stablehlo.map"(%a, %b) ({{
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    %1 = stablehlo.multiply %x, %y : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }}) {{dimensions = array<i64: 0, 1>}} : ({MATRIX}, {MATRIX}) -> {MATRIX}
  return %0 : {MATRIX}
}}""")
    assert _sent(cost) == (128, 448)


def test_the_partitioner_sees_no_propagation_barriers():
    """The exponentials are gathered before the negation, which is divided as its result is."""
    cost = _cost(f"""
func.func @main(%a: {MATRIX} {_on("x", "")}) -> ({MATRIX} {_on("", "y")}) {{
  %0 = stablehlo.exponential %a : {MATRIX}
  %1 = sdy.propagation_barrier %0 allowed_direction=NONE : {MATRIX}
  %2 = stablehlo.negate %1 : {MATRIX}
  return %2 : {MATRIX}
}}""")
    assert _sent(cost) == (64, 384)
    assert cost.transcendentals.value == 32


def test_an_expanded_op_divides_as_all_of_its_operands():
    """The result has the rows of one operand and the columns of the other, and is gathered along both.

    XLA counts 544 operations, as it computes what depends on one operand alone before that operand is divided further.
    """
    cost = _cost(f"""
func.func @main(%a: {MATRIX} {_on("x", "")}, %b: {MATRIX} {_on("", "y")}) -> {MATRIX} {{
  %0 = chlo.next_after %a, %b : {MATRIX}, {MATRIX} -> {MATRIX}
  return %0 : {MATRIX}
}}""")
    assert [item.kind for item in cost.transfers if item.bytes] == ["all_gather"]
    assert cost.flops.value == 23 * 16


VECTOR = "tensor<4xf32>"
BATCH = "tensor<8x16x4xf32>"


@pytest.mark.parametrize(
    ("kind", "operands", "results", "flops"),
    [
        ("inference", [BATCH, *[VECTOR] * 4], [BATCH], 1040),
        ("training", [BATCH, *[VECTOR] * 2], [BATCH, VECTOR, VECTOR], 3604),
        ("grad", [BATCH, *[VECTOR] * 3, BATCH], [BATCH, VECTOR, VECTOR], 5648),
    ],
)
def test_a_batch_normalization_is_computed_on_whole_tensors(kind, operands, results, flops):
    """Each large operand is gathered, the vectors are whole already."""
    names = [f"%a{number}" for number in range(len(operands))]
    types = ", ".join(results)
    pairs = zip(names, operands, strict=True)
    arguments = [f"{name}: {type_} {_on('x', '', '') if type_ == BATCH else ''}" for name, type_ in pairs]
    count = f":{len(results)}" if len(results) > 1 else ""
    returned = ", ".join(f"%0#{number}" for number in range(len(results))) if count else "%0"
    cost = _cost(f"""
func.func @main({", ".join(arguments)}) -> ({types}) {{
  %0{count} = "stablehlo.batch_norm_{kind}"({", ".join(names)}) {{epsilon = 0.001 : f32, feature_index = 2 : i64}}
      : ({", ".join(operands)}) -> ({types})
  return {returned} : {types}
}}""")
    gathered = operands.count(BATCH) * 3 * 2048 // 4
    assert _sent(cost) == (flops, gathered)
    assert cost.transcendentals.value == 4


@pytest.mark.parametrize(
    ("operand", "result", "sent"),
    [
        (("x", ""), ("x", ""), [128]),
        (("x", ""), ("", "x"), [96]),
        (("y", ""), ("x", ""), [128]),
        (("x", ""), ("y", ""), [128, 128]),
        (("", "x"), ("y", "x"), []),
        (("", ""), ("x", ""), []),
        (("x", "y"), ("y", "x"), [32, 64]),
    ],
)
def test_shards_change_places_on_their_way_to_a_reversal(operand, result, sent):
    """Where the operand is permuted or sliced anyway, the order of devices is that of the reversed result."""
    cost = _cost(f"""
func.func @main(%a: {MATRIX} {_on(*operand)}) -> ({MATRIX} {_on(*result)}) {{
  %0 = stablehlo.reverse %a, dims = [0] : {MATRIX}
  return %0 : {MATRIX}
}}""")
    assert sorted(item.bytes for item in cost.transfers if item.bytes) == sent


@pytest.mark.parametrize(
    ("table", "result", "sent"),
    [
        (("", "x"), ("", ""), [3072]),
        (("", "x"), ("y", "x"), []),
        (("y", "x"), ("", ""), [1024, 3072]),
        (("x", "y"), ("", ""), [2048, 3072]),
    ],
)
def test_a_table_stays_divided_along_what_is_copied_of_it(table, result, sent):
    """What is looked up is moved to where it belongs, which is much less than the table."""
    cost = _cost(f"""
func.func @main(%a: tensor<128x64xf32> {_on(*table)}, %i: tensor<16x1xi32>)
    -> (tensor<16x64xf32> {_on(*result)}) {{
  %0 = "stablehlo.gather"(%a, %i) <{{slice_sizes = array<i64: 1, 64>, dimension_numbers = #stablehlo.gather<
      offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>}}>
      : (tensor<128x64xf32>, tensor<16x1xi32>) -> tensor<16x64xf32>
  return %0 : tensor<16x64xf32>
}}""")
    assert sorted(item.bytes for item in cost.transfers if item.bytes) == sent


@pytest.mark.parametrize(
    ("body", "sent"),
    [
        (
            f"""func.func @main(%a: {MATRIX} {_on("y", "")}, %b: {MATRIX} {_on("", "")})
    -> (tensor<8x32xf32> {_on("", "x")}) {{
  %0 = stablehlo.concatenate %a, %b, dim = 1 : ({MATRIX}, {MATRIX}) -> tensor<8x32xf32>
  return %0 : tensor<8x32xf32>
}}""",
            [96, 128],
        ),
        (
            f"""func.func @main(%a: {MATRIX} {_on("", "x")}, %b: tensor<8x4xf32>, %i: tensor<i32>)
    -> ({MATRIX} {_on("", "")}) {{
  %0 = stablehlo.dynamic_update_slice %a, %b, %i, %i
    : ({MATRIX}, tensor<8x4xf32>, tensor<i32>, tensor<i32>) -> {MATRIX}
  return %0 : {MATRIX}
}}""",
            [384, 384],
        ),
    ],
    ids=["concatenate", "update"],
)
def test_a_result_gets_its_own_sharding_before_that_of_the_function(body, sent):
    """XLA does not merge the two reshards, even where the second one leads back to what was computed."""
    assert sorted(item.bytes for item in _cost(body).transfers if item.bytes) == sent


@pytest.mark.parametrize(
    ("operand", "result", "sent"),
    [(("y", "x"), ("y", ""), 192), (("y", "x"), ("y", "x"), 192 + 256), (("x", ""), ("", "y"), 384 + 48)],
)
def test_a_slice_that_is_divided_where_it_is_taken_is_made_of_the_whole_tensor(operand, result, sent):
    """Otherwise only the dimension of which it is a part is gathered."""
    cost = _cost(f"""
func.func @main(%a: {MATRIX} {_on(*operand)}, %i: tensor<i32>) -> (tensor<8x4xf32> {_on(*result)}) {{
  %0 = stablehlo.dynamic_slice %a, %i, %i, sizes = [8, 4]
    : ({MATRIX}, tensor<i32>, tensor<i32>) -> tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}}""")
    assert cost.communication_bytes.value == sent


@pytest.mark.parametrize(
    ("left", "right", "result", "sent"),
    [
        (("y", "x"), ("x", ""), '[{"y", "x"}, {}]', 12288),
        (("x", "y"), ("y", "x"), '[{"x", "y"}, {}]', 3072 + 12288 + 16384),
        (("x", "y"), ("y", ""), '[{"y", "x"}, {}]', 12288 + 16384),
    ],
)
def test_rows_are_gathered_where_the_result_divides_them_by_the_sum_too(left, right, result, sent):
    """They stay where the result has their axes first, and the other operand does not."""
    cost = _cost(f"""
func.func @main(%a: tensor<128x64xf32> {_on(*left)}, %b: tensor<64x32xf32> {_on(*right)})
    -> (tensor<128x32xf32> {{sdy.sharding = #sdy.sharding<@mesh, {result}>}}) {{
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
    : (tensor<128x64xf32>, tensor<64x32xf32>) -> tensor<128x32xf32>
  return %0 : tensor<128x32xf32>
}}""")
    assert cost.communication_bytes.value == sent


def test_a_function_that_xla_keeps_is_computed_on_parts():
    """Shardy has no rule for the error function of a program of JAX; XLA computes it on each device's part."""
    text = f"""
module @jit_f attributes {{mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32}} {{
  {MESH}
  func.func public @main(%a: {MATRIX} {_on("x", "")}) -> ({MATRIX} {{jax.result_info = "result"}}) {{
    %0 = stablehlo.exponential %a : {MATRIX}
    %1 = stablehlo.negate %0 : {MATRIX}
    %2 = chlo.erf %a : {MATRIX} -> {MATRIX}
    %3 = stablehlo.add %1, %2 : {MATRIX}
    return %3 : {MATRIX}
  }}
}}"""
    cost = Session.open(text).evaluate(profile="xla-cpu", partitioner="xla").cost
    assert _sent(cost)[1] == 0
