"""Costs under the rules of backends."""

from __future__ import annotations

import pytest

pytest.importorskip("jaxlib", reason="the frontend is jaxlib's")

from shardy_py.cost.session import Session
from shardy_py.errors import OptionError

MESH = 'sdy.mesh @mesh = <["a"=2, "b"=4]>\n'


def _cost(body, profile):
    return Session.open(MESH + body).evaluate(profile=profile, partitioner="xla").cost


LOOP = """
func.func @main(%x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>},
                %w: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"b"}, {}]>})
    -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %0:3 = stablehlo.while(%i = %zero, %y = %x, %v = %w) : tensor<i32>, tensor<8x8xf32>, tensor<8x8xf32>
  cond {
    %n = stablehlo.constant dense<5> : tensor<i32>
    %p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %j = stablehlo.add %i, %one : tensor<i32>
    %g = sdy.sharding_constraint %v <@mesh, [{}, {}]> : tensor<8x8xf32>
    %z = stablehlo.dot %y, %g : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    stablehlo.return %j, %z, %v : tensor<i32>, tensor<8x8xf32>, tensor<8x8xf32>
  }
  return %0#1 : tensor<8x8xf32>
}
"""


def test_a_collective_on_what_does_not_change_leaves_the_loop_where_the_backend_hoists():
    """The weight is gathered five times, but once with XLA for the host; the transfer and a note say so."""
    plain, host = _cost(LOOP, "none"), _cost(LOOP, "xla-cpu")
    assert [item.runs for item in plain.transfers if item.bytes] == [5]
    (moved,) = [item for item in host.transfers if item.bytes]
    assert (moved.runs, moved.is_hoisted) == (1, True)
    assert "1 transfers run once before their loop, as xla-cpu moves them there" in host.notes
    assert (plain.profile, host.profile) == ("none", "xla-cpu")


AGAIN = """
func.func @main(%x: tensor<8x8xf32>, %w: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>) {
  %before = stablehlo.dot %x, %w : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %0:4 = stablehlo.while(%i = %zero, %y = %x, %u = %x, %v = %w)
      : tensor<i32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>
  cond {
    %n = stablehlo.constant dense<5> : tensor<i32>
    %p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %j = stablehlo.add %i, %one : tensor<i32>
    %z = stablehlo.dot %OPERAND, %v : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    %s = stablehlo.add %y, %z : tensor<8x8xf32>
    stablehlo.return %j, %s, %u, %v : tensor<i32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>
  }
  return %before, %0#1 : tensor<8x8xf32>, tensor<8x8xf32>
}
"""


@pytest.mark.parametrize(
    ("operand", "profile", "products"), [("u", "xla-cpu", 1), ("u", "none", 6), ("y", "xla-cpu", 6)]
)
def test_what_leaves_a_loop_is_equal_to_what_was_computed_before(operand, profile, products):
    """A product of what does not change leaves the loop and is there already; one of what changes stays."""
    cost = _cost(AGAIN.replace("OPERAND", operand), profile)
    others = 5 * (8 * 8 + 1) + 6
    assert cost.flops.value == products * 2 * 8 * 8 * 8 + others


FREE = """
func.func @main(%x: tensor<8x8xf32>, %w: tensor<8xf32>) -> tensor<8x8xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %0:3 = stablehlo.while(%i = %zero, %y = %x, %v = %w) : tensor<i32>, tensor<8x8xf32>, tensor<8xf32>
  cond {
    %n = stablehlo.constant dense<5> : tensor<i32>
    %p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %j = stablehlo.add %i, %one : tensor<i32>
    WIDEN
    %z = stablehlo.add %y, %b : tensor<8x8xf32>
    stablehlo.return %j, %z, %v : tensor<i32>, tensor<8x8xf32>, tensor<8xf32>
  }
  return %0#1 : tensor<8x8xf32>
}
"""
WIDE = "stablehlo.broadcast_in_dim %v, dims = [0] : (tensor<8xf32>) -> tensor<8x8xf32>"


def test_a_broadcast_of_what_does_not_change_stays_in_the_loop():
    """It is part of the addition and takes no memory; its exponential is computed before, once, in 4 * 64 bytes."""
    arguments_and_result, counter = 4 * (64 + 8) + 4 * 64, 4
    alone = _cost(FREE.replace("WIDEN", f"%b = {WIDE}"), "xla-cpu")
    assert alone.peak_bytes.value == arguments_and_result + counter + 1
    used = _cost(FREE.replace("WIDEN", f"%c = {WIDE}\n    %b = stablehlo.exponential %c : tensor<8x8xf32>"), "xla-cpu")
    assert used.peak_bytes.value == arguments_and_result + counter + 4 * 64
    assert used.transcendentals.value == 64


TWO_SUMS = """
func.func @main(%x: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"b"}, {}]>},
                %y: tensor<8x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"b"}, {}]>})
    -> (tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>},
        tensor<6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}) {
  %s = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %s) applies stablehlo.add across dimensions = [0]
    : (tensor<8x4xf32>, tensor<f32>) -> tensor<4xf32>
  %1 = stablehlo.reduce(%y init: %s) applies stablehlo.add across dimensions = [0]
    : (tensor<8x6xf32>, tensor<f32>) -> tensor<6xf32>
  return %0, %1 : tensor<4xf32>, tensor<6xf32>
}
"""


def test_all_reduces_that_do_not_need_each_other_become_one_where_the_backend_combines():
    """The bytes stay; the second says with which it is combined."""
    plain, host = _cost(TWO_SUMS, "none"), _cost(TWO_SUMS, "xla-cpu")
    assert host.communication_bytes.value == plain.communication_bytes.value
    assert [item.combined for item in plain.transfers] == [1, 1]
    first, second = host.transfers
    assert (first.combined, second.combined) == (2, 2)
    assert (first.combined_with, second.combined_with) == (-1, first.op_id)


REPEATED = """
func.func @main(%x: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"b"}, {}]>})
    -> (tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}) {
  %0 = sdy.all_gather [{"b"}, {}] %x out_sharding=<@mesh, [{}, {}]> : tensor<8x4xf32>
  %1 = sdy.all_gather [{"b"}, {}] %x out_sharding=<@mesh, [{}, {}]> : tensor<8x4xf32>
  %2 = sdy.all_gather [{"b"}, {}] %x out_sharding=<@mesh, [{}, {}]> : tensor<8x4xf32>
  %3 = stablehlo.add %0, %1 : tensor<8x4xf32>
  return %3 : tensor<8x4xf32>
}
"""


def test_a_tensor_is_brought_to_the_same_sharding_once_where_the_backend_remembers():
    """Of three equal gathers, one of them unused, XLA makes one; without a profile all stay."""
    assert _cost(REPEATED, "none").counts == {"all_gather": 3}
    assert _cost(REPEATED, "xla-cpu").counts == {"all_gather": 1}
    assert _cost(REPEATED, "xla-gpu").counts == {"all_gather": 1}


UNUSED = """
func.func @main(%x: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"b"}, {}]>}) -> tensor<8x4xf32> {
  %0 = sdy.all_gather [{"b"}, {}] %x out_sharding=<@mesh, [{}, {}]> : tensor<8x4xf32>
  return %x : tensor<8x4xf32>
}
"""


def test_communications_that_nobody_uses_count_where_no_backend_drops_them():
    """XLA drops a gather without users; without a profile it stays."""
    assert _cost(UNUSED, "none").counts == {"all_gather": 1}
    assert _cost(UNUSED, "xla-cpu").counts == {}


SUMS = """
func.func @main(%x: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>})
    -> (tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}) {
  %0 = sdy.all_reduce {"b"} %x out_sharding=<@mesh, [{}, {}]> : tensor<8x4xf32>
  %1 = sdy.all_reduce {"b"} %x out_sharding=<@mesh, [{}, {}]> : tensor<8x4xf32>
  %2 = stablehlo.negate %1 : tensor<8x4xf32>
  %3 = stablehlo.add %0, %2 : tensor<8x4xf32>
  return %3 : tensor<8x4xf32>
}
"""


def test_equal_sums_stay_apart():
    """XLA sums a tensor twice for two ops, which are combined."""
    assert _cost(SUMS, "xla-cpu").counts == {"all_reduce": 2}


@pytest.mark.parametrize(("rows", "gathers"), [(8, 1), (16, 1), (32, 2), (64, 2)])
def test_what_groups_of_devices_gather_is_gathered_again_for_other_ops(rows, gathers):
    """A layer and the gradient of its weights need the same rows of `x`; XLA 0.10.2 has as many gathers of them.

    If the rows of a device take more memory than its columns of the weights, devices with the same rows are a group.
    """
    text = f"""
func.func @main(%x: tensor<{rows}x8xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{"a"}}, {{"b"}}]>}},
                %w: tensor<8x16xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{}}, {{"b"}}]>}},
                %d: tensor<{rows}x16xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{"a"}}, {{"b"}}]>}})
    -> (tensor<{rows}x16xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{"a"}}, {{"b"}}]>}},
        tensor<8x16xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{}}, {{"b"}}]>}}) {{
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
    : (tensor<{rows}x8xf32>, tensor<8x16xf32>) -> tensor<{rows}x16xf32>
  %1 = stablehlo.tanh %0 : tensor<{rows}x16xf32>
  %2 = stablehlo.dot_general %x, %d, contracting_dims = [0] x [0]
    : (tensor<{rows}x8xf32>, tensor<{rows}x16xf32>) -> tensor<8x16xf32>
  return %1, %2 : tensor<{rows}x16xf32>, tensor<8x16xf32>
}}"""
    assert _cost(text, "xla-cpu").counts == {"all_gather": gathers, "all_reduce": 1}


TWICE = """
func.func @main(%x: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"b"}, {}]>}, %w: tensor<4x4xf32>)
    -> (tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}) {
  %0 = sdy.all_gather [{"b"}, {}] %x out_sharding=<@mesh, [{}, {}]> : tensor<8x4xf32>
  %1 = sdy.all_gather [{"b"}, {}] %x out_sharding=<@mesh, [{}, {}]> : tensor<8x4xf32>
  %2 = stablehlo.dot %0, %w : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %3 = stablehlo.dot %1, %w : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %4 = stablehlo.add %2, %3 : tensor<8x4xf32>
  return %4 : tensor<8x4xf32>
}
"""


def test_equal_ops_behind_equal_communications_are_computed_once():
    """Both products are one, so that the second gather has no users."""
    cost = _cost(TWICE, "xla-cpu")
    assert cost.counts == {"all_gather": 1}
    assert cost.flops.value == 2 * 8 * 4 * 4 + 8 * 4


MEAN = """
func.func @main(%x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {"b"}]>})
    -> (tensor<f32> {sdy.sharding = #sdy.sharding<@mesh, []>}) {
  %s = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %s) applies stablehlo.add across dimensions = [0, 1]
    : (tensor<8x8xf32>, tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}
"""


def test_xla_reduces_along_the_axes_of_one_dimension_after_the_other():
    """4 bytes: among two devices and then among four, 2 1/2 4 + 2 3/4 4; among eight at once, 2 7/8 4."""
    assert _cost(MEAN, "xla-cpu").communication_bytes.value == 4 + 6
    assert _cost(MEAN, "none").communication_bytes.value == 7


ATTENTION = """
func.func @main(%q: tensor<2x16x4x8xf32>, %k: tensor<2x16x4x8xf32>) -> tensor<2x4x16x16xf32> {
  %0 = stablehlo.dot_general %q, %k, batching_dims = [0, 2] x [0, 2], contracting_dims = [3] x [3]
    : (tensor<2x16x4x8xf32>, tensor<2x16x4x8xf32>) -> tensor<2x4x16x16xf32>
  return %0 : tensor<2x4x16x16xf32>
}
"""


def test_operands_with_batch_dimensions_further_behind_are_copied():
    """Each operand is read and written once more than without the copies."""
    operand, result = 2 * 16 * 4 * 8 * 4, 2 * 4 * 16 * 16 * 4
    assert _cost(ATTENTION, "none").memory_traffic_bytes.value == 2 * operand + result
    assert _cost(ATTENTION, "xla-cpu").memory_traffic_bytes.value == 6 * operand + result
    assert _cost(ATTENTION, "xla-cpu").peak_bytes.value == 4 * operand + result


@pytest.mark.parametrize(("heads", "copies"), [(4, 1), (1, 0)])
def test_an_operand_with_other_dimensions_around_the_contracted_one_is_copied(heads, copies):
    """The weights of several heads are read and written once more, and the copy is in memory; one head needs none."""
    text = f"""
func.func @main(%x: tensor<16x8xf32>, %w: tensor<{heads}x8x32xf32>) -> tensor<16x{heads}x32xf32> {{
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [1]
    : (tensor<16x8xf32>, tensor<{heads}x8x32xf32>) -> tensor<16x{heads}x32xf32>
  return %0 : tensor<16x{heads}x32xf32>
}}"""
    weights, others = 4 * heads * 8 * 32, 4 * (16 * 8 + 16 * heads * 32)
    cost = _cost(text, "xla-cpu")
    assert cost.memory_traffic_bytes.value == (1 + 2 * copies) * weights + others
    assert cost.peak_bytes.value == (1 + copies) * weights + others


CONTRACTED = """
func.func @main(%x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {"b"}]>},
                %w: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {"b"}]>})
    -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {"b"}]>}) {
  %0 = stablehlo.dot %x, %w {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {"b"}]>]>}
    : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}
"""


def test_xla_gathers_operands_along_the_axes_that_the_result_lacks():
    """The left side is gathered along b and the right one along a: 3 and 1 shards of 4x2 and 4x2 numbers."""
    cost = _cost(CONTRACTED, "xla-cpu")
    assert {item.kind: item.bytes for item in cost.transfers if item.axes == '{"b"}'} == {"all_gather": 3 * 4 * 8}
    assert cost.communication_bytes.value == 3 * 4 * 8 + 4 * 8


def test_a_profile_that_nobody_knows_is_an_error():
    """The names are listed."""
    with pytest.raises(OptionError, match="there is no profile 'xla-tpu'"):
        _cost(TWO_SUMS, "xla-tpu")


def _product(lhs, rhs, out, sizes=(64, 128, 256)):
    """Return a product of matrices with the given axes of their dimensions."""
    m, k, n = sizes

    def dims(axes):
        return "[" + ", ".join("{}" if axis == "-" else f'{{"{axis}"}}' for axis in axes) + "]"

    result = f"#sdy.sharding<@mesh, {dims(out)}>"
    return f"""
func.func @main(%x: tensor<{m}x{k}xf32> {{sdy.sharding = #sdy.sharding<@mesh, {dims(lhs)}>}},
                %w: tensor<{k}x{n}xf32> {{sdy.sharding = #sdy.sharding<@mesh, {dims(rhs)}>}})
    -> (tensor<{m}x{n}xf32> {{sdy.sharding = {result}}}) {{
  %0 = stablehlo.dot %x, %w {{sdy.sharding = #sdy.sharding_per_value<[<@mesh, {dims(out)}>]>}}
    : (tensor<{m}x{k}xf32>, tensor<{k}x{n}xf32>) -> tensor<{m}x{n}xf32>
  return %0 : tensor<{m}x{n}xf32>
}}
"""


@pytest.mark.parametrize(
    ("axes", "sizes", "moved"),
    [
        # The right side is divided along both dimensions: summing sends no more than gathering it.
        (("--", "ab", "-b"), (64, 128, 256), {"all_reduce": 16384}),
        # Here summing would send more.
        (("--", "ab", "-b"), (256, 64, 64), {"all_gather": 2048}),
        # Nothing but the contracted dimension is divided: the right side is gathered.
        (("--", "b-", "--"), (8, 128, 256), {"all_gather": 98304}),
        # The right side is gathered whole, and then each device takes its columns.
        (("--", "a-", "-b"), (64, 128, 256), {"all_gather": 65536}),
        # The axis of the rows is summed along: they are divided along another one, and moved back.
        (("-a", "a-", "a-"), (64, 128, 256), {"all_reduce": 32768, "collective_permute": 32768}),
    ],
)
def test_products_move_what_xla_moves_for_them(axes, sizes, moved):
    """Kinds and bytes are those that XLA's own partitioner has for these shardings."""
    actual = {item.kind: item.bytes for item in _cost(_product(*axes, sizes), "xla-cpu").transfers if item.bytes}
    assert actual == moved


BARRIER = """
func.func @main(%x: tensor<8x4xf32>) -> (tensor<8x4xf32>) {
  %0 = stablehlo.optimization_barrier %x : tensor<8x4xf32>
  %1 = stablehlo.tanh %0 : tensor<8x4xf32>
  return %1 : tensor<8x4xf32>
}
"""


def test_a_barrier_costs_nothing():
    """Its results are its operands: only the op behind it reads and writes."""
    cost = _cost(BARRIER, "xla-cpu")
    assert [item.name for item in cost.ops] == ["stablehlo.tanh"]
    assert cost.memory_traffic_bytes.value == 2 * 8 * 4 * 4


FOLDED = """
func.func @main(%x: tensor<8x4xf32>) -> (tensor<8x4xf32>) {
  %0 = stablehlo.constant dense<2.0> : tensor<8x4xf32>
  %1 = stablehlo.multiply %0, %0 : tensor<8x4xf32>
  %2 = stablehlo.add %x, %1 : tensor<8x4xf32>
  return %2 : tensor<8x4xf32>
}
"""


def test_what_is_computed_from_constants_alone_takes_no_operations():
    """Only the addition counts: one operation per element."""
    assert _cost(FOLDED, "xla-cpu").flops.value == 8 * 4
