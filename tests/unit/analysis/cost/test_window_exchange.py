"""Halos of windows along a sharded dimension: what devices send, and what they put together.

The numbers are those of XLA:CPU of jaxlib 0.10.2 for the same programs, without operations on single indices.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("jaxlib", reason="the frontend is jaxlib's")

from shardy_py.analysis.cost.window_exchange import Reach
from shardy_py.analysis.session import Session
from shardy_py.ir.costs import Window

MESH = 'sdy.mesh @mesh = <["x"=4]>\n'
SHARDED, WHOLE = '[{}, {"x"}]', "[{}, {}]"


def _cost(size, out, body, *, operand=SHARDED):
    """Return the cost of one op on 128 rows; its result is sharded."""
    return (
        Session.open(f"""{MESH}
func.func @main(%a: tensor<128x{size}xf32> {{sdy.sharding = #sdy.sharding<@mesh, {operand}>}})
    -> (tensor<128x{out}xf32> {{sdy.sharding = #sdy.sharding<@mesh, {SHARDED}>}}) {{
  {body}
  return %0 : tensor<128x{out}xf32>
}}""")
        .evaluate(profile="xla-cpu")
        .cost
    )


def _slice(size, start, stop, stride=1):
    out = -(-(stop - start) // stride)
    types = f"(tensor<128x{size}xf32>) -> tensor<128x{out}xf32>"
    return _cost(size, out, f"%0 = stablehlo.slice %a [0:128, {start}:{stop}:{stride}] : {types}")


def _pad(size, low, high, **options):
    out = size + low + high
    return _cost(
        size,
        out,
        f"""%c = stablehlo.constant dense<1.0> : tensor<f32>
  %0 = stablehlo.pad %a, %c, low = [0, {low}], high = [0, {high}], interior = [0, 0]
    : (tensor<128x{size}xf32>, tensor<f32>) -> tensor<128x{out}xf32>""",
        **options,
    )


def _windows(size, low, high, **options):
    """Return the cost of sums of successive elements of a row."""
    return _cost(
        64,
        64 + low + high - size + 1,
        f"""%c = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = "stablehlo.reduce_window"(%a, %c) <{{padding = dense<[[0, 0], [{low}, {high}]]> : tensor<2x2xi64>,
      window_dimensions = array<i64: 1, {size}>}}> ({{
    ^bb0(%x: tensor<f32>, %y: tensor<f32>):
      %1 = stablehlo.add %x, %y : tensor<f32>
      stablehlo.return %1 : tensor<f32>
  }}) : (tensor<128x64xf32>, tensor<f32>) -> tensor<128x{64 + low + high - size + 1}xf32>""",
        **options,
    )


def _sent(cost):
    return [(item.kind, item.bytes) for item in cost.transfers if item.bytes]


def _permuted(*sizes):
    return [("collective_permute", size) for size in sizes]


@pytest.mark.parametrize(
    ("arguments", "sent", "selected"),
    [
        ((64, 8, 56), (2048, 2048), 0),
        ((64, 0, 48), (6144,), 0),
        ((64, 0, 60), (1536,), 0),
        ((64, 0, 32), (8192, 4096), 4096),
        ((64, 16, 32), (2048, 2048, 2048), 1536),
        ((64, 24, 40), (4096,), 2048),
        ((256, 100, 132), (22528, 4096, 2048), 16896),
        ((256, 0, 128, 2), (32256, 15872), 16128),
        ((64, 0, 64, 2), (), 0),
    ],
)
def test_a_slice_moves_shards_between_neighbours_or_only_what_is_read(arguments, sent, selected):
    """Shards that are read far away are sent in parts, from which each device then chooses its own."""
    cost = _slice(*arguments)
    assert sorted(_sent(cost)) == sorted(_permuted(*sent))
    assert cost.flops.value == selected


@pytest.mark.parametrize(
    ("low", "high", "sent", "masked"),
    [
        (4, 4, (1024, 1024), 11520),
        (8, 0, (3072,), 6912),
        (32, 32, (8192, 8192), 20480),
        (64, 0, (8192, 8192, 8192), 12288),
        (-16, -16, (4096, 4096), 0),
        (-8, 8, (4096,), 6144),
    ],
)
def test_a_pad_shifts_shards_and_masks_what_is_outside(low, high, sent, masked):
    """Devices at the bounds take part as if the tensor went on there."""
    cost = _pad(64, low, high)
    assert _sent(cost) == _permuted(*sent)
    assert cost.flops.value == masked


@pytest.mark.parametrize(
    ("make", "arguments", "operations"),
    [(_pad, (64, 0, 192), 0), (_pad, (64, 100, 100), 0), (_windows, (64, 63, 0), 63 * 128 * 16)],
    ids=["at-the-end", "at-both-ends", "cumulative-sum"],
)
def test_shards_are_gathered_where_windows_reach_over_nearly_all(make, arguments, operations):
    """Each device gets three shards of 128 x 16 elements."""
    cost = make(*arguments)
    assert _sent(cost) == [("all_gather", 3 * 128 * 16 * 4)]
    assert cost.flops.value == operations


@pytest.mark.parametrize(
    ("make", "arguments", "operations"),
    [(_pad, (64, 4, 4), 0), (_windows, (3, 1, 1), 2 * 128 * 16)],
    ids=["pad", "windows"],
)
def test_windows_of_a_whole_tensor_send_nothing(make, arguments, operations):
    """Each device has all that its part of the result reads."""
    cost = make(*arguments, operand=WHOLE)
    assert _sent(cost) == []
    assert cost.flops.value == operations


def test_what_two_shards_read_of_a_third_is_sent_one_after_the_other():
    """Of 4 shards of 16 the result has 4 of 8: the second and third one read halves of the first two shards."""
    exchange = Reach(Window(0, 0, 0, 1, low=0, is_padded=False), 64, 16, 8, 4).exchange
    assert (exchange.sent, exchange.selected, exchange.is_gathered) == ((16, 8), 32, False)


@given(st.integers(2, 5), st.integers(1, 6), st.integers(1, 4), st.integers(1, 3), st.integers(-9, 9), st.data())
def test_permutations_bring_all_that_a_shard_reads_of_others(count, part, size, stride, low, data):
    """None is larger than a shard, and what a shard reads of another one is part of one of them."""
    whole = count * part
    out = data.draw(st.integers(1, 2 * whole))
    reach = Reach(Window(0, 0, 0, size, stride, low), whole, part, -(-out // count), count)
    exchange = reach.exchange
    if exchange.is_gathered:
        assert exchange.sent == ((count - 1) * part,)
        return
    assert all(0 < sent <= part for sent in exchange.sent)
    for shard, (start, end) in enumerate(zip(reach.starts, reach.ends, strict=True)):
        inside = range(max(start, 0), min(end, whole))
        assert sum(exchange.sent) >= sum(1 for element in inside if element // part != shard)
