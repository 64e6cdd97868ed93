"""Reads and writes at known places of sharded tensors: few rows are sent, and the results stay the same."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("jaxlib", reason="programs are MLIR text")

import shardy_py as sdy
from tests.unit.local.communication.sent_bytes import sent_bytes
from tests.unit.local.host_devices import compare_padded

ROWS = '{sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}'
WHOLE = "{sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}"
ROW = 16
"""The bytes of a row of four floats."""


def program(arguments: str, body: str, result: str, mesh: str = '"x"=4') -> str:
    """Return a module with one function, which returns ``%r``."""
    type_ = result.partition(" {")[0]
    head = f"sdy.mesh @mesh = <[{mesh}]>\nfunc.func @main({arguments}) -> ({result}) {{\n"
    return f"{head}{body}\n  return %r : {type_}\n}}"


def scatter(body: str) -> str:
    """Return a scatter of one window at row 5, whose region computes ``%s``."""
    return f"""  %at = stablehlo.constant dense<5> : tensor<i32>
  %index = stablehlo.broadcast_in_dim %at, dims = [] : (tensor<i32>) -> tensor<1xi32>
  %r = "stablehlo.scatter"(%a, %index, %u) <{{
    scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [0, 1], scatter_dims_to_operand_dims = [0]>,
    unique_indices = true}}> ({{
  ^bb0(%old: tensor<f32>, %new: tensor<f32>):
    {body}
  }}) : (tensor<64x4xf32>, tensor<1xi32>, tensor<52x4xf32>) -> tensor<64x4xf32>"""


ARGUMENT = f"%a: tensor<64x4xf32> {ROWS}"
WITH_UPDATE = f"{ARGUMENT}, %u: tensor<52x4xf32> {ROWS}"
RESULT = f"tensor<64x4xf32> {ROWS}"
ZERO = "  %z = stablehlo.constant dense<0> : tensor<i32>\n"
AT_5 = f"  %at = stablehlo.constant dense<5> : tensor<i32>\n{ZERO}"
PROGRAMS: dict[str, tuple[str, float]] = {
    # Of 52 rows from row 5 on, 2, 1 and 4 are on another device than the place: each device sends at most 4.
    "an update goes in pieces": (
        program(
            WITH_UPDATE,
            f"{AT_5}  %r = stablehlo.dynamic_update_slice %a, %u, %at, %z : "
            "(tensor<64x4xf32>, tensor<52x4xf32>, tensor<i32>, tensor<i32>) -> tensor<64x4xf32>",
            RESULT,
        ),
        4 * ROW,
    ),
    "a scatter of one window goes in pieces": (
        program(WITH_UPDATE, scatter("stablehlo.return %new : tensor<f32>"), RESULT),
        4 * ROW,
    ),
    # The rows that are there go to the update, and the sums back.
    "a scatter that adds goes in pieces": (
        program(
            WITH_UPDATE,
            scatter("%s = stablehlo.add %old, %new : tensor<f32>\n    stablehlo.return %s : tensor<f32>"),
            RESULT,
        ),
        2 * 4 * ROW,
    ),
    "a dynamic slice at a constant is a slice": (
        program(
            ARGUMENT,
            f"{AT_5}  %r = stablehlo.dynamic_slice %a, %at, %z, sizes = [52, 4] : "
            "(tensor<64x4xf32>, tensor<i32>, tensor<i32>) -> tensor<52x4xf32>",
            f"tensor<52x4xf32> {ROWS}",
        ),
        4 * ROW,
    ),
    "a row of a number that scalar ops compute comes from its owner": (
        program(
            ARGUMENT,
            f"""{ZERO}  %n = stablehlo.constant dense<-3> : tensor<i32>
  %size = stablehlo.constant dense<64> : tensor<i32>
  %negative = stablehlo.compare LT, %n, %z : (tensor<i32>, tensor<i32>) -> tensor<i1>
  %wrapped = stablehlo.add %n, %size : tensor<i32>
  %at = stablehlo.select %negative, %wrapped, %n : tensor<i1>, tensor<i32>
  %r = stablehlo.dynamic_slice %a, %at, %z, sizes = [1, 4]
    : (tensor<64x4xf32>, tensor<i32>, tensor<i32>) -> tensor<1x4xf32>""",
            f"tensor<1x4xf32> {WHOLE}",
        ),
        3 / 4 * ROW,
    ),
    "rows of two owners come from both": (
        program(
            ARGUMENT,
            "  %r = stablehlo.slice %a [14:18, 0:4] : (tensor<64x4xf32>) -> tensor<4x4xf32>",
            f"tensor<4x4xf32> {WHOLE}",
        ),
        3 / 4 * 4 * ROW,
    ),
    # Each device has two rows of the sum of four slices.
    "a slice at an unknown place is summed where it is sharded": (
        program(
            f"{ARGUMENT}, %i: tensor<i32>",
            f"{ZERO}  %r = stablehlo.dynamic_slice %a, %i, %z, sizes = [8, 4] : "
            "(tensor<64x4xf32>, tensor<i32>, tensor<i32>) -> tensor<8x4xf32>",
            f"tensor<8x4xf32> {ROWS}",
        ),
        3 * 2 * ROW,
    ),
    # Of two tensors with 16 rows on each of 4 devices, 6 of 8 shards go to another device.
    "tensors joined along a sharded dimension send their shards once": (
        program(
            f"{ARGUMENT}, %b: tensor<64x4xf32> {ROWS}",
            "  %r = stablehlo.concatenate %a, %b, dim = 0 : (tensor<64x4xf32>, tensor<64x4xf32>) -> tensor<128x4xf32>",
            f"tensor<128x4xf32> {ROWS}",
        ),
        6 / 4 * 16 * ROW,
    ),
    "a row at an unknown place is summed along its own axis only": (
        program(
            '%a: tensor<64x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>}, %i: tensor<i32>',
            f"{ZERO}  %r = stablehlo.dynamic_slice %a, %i, %z, sizes = [1, 4] : "
            "(tensor<64x4xf32>, tensor<i32>, tensor<i32>) -> tensor<1x4xf32>",
            'tensor<1x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"y"}]>}',
            '"x"=4, "y"=2',
        ),
        2 * 3 / 4 * ROW / 2,
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_few_rows_are_sent(name: str) -> None:
    """No more than those that change their device; without the passes more."""
    text, most = PROGRAMS[name]
    result = sdy.propagate(text)
    assert 0 < sent_bytes(result.local(), result.registry) <= most
    assert sent_bytes(result.local(optimize=False), result.registry) >= most


def test_a_window_outside_of_the_operand_is_not_written() -> None:
    """A scatter drops it, where an update would move it inside: it stays a scatter."""
    text = program(WITH_UPDATE, scatter("stablehlo.return %new : tensor<f32>"), RESULT).replace("dense<5>", "dense<13>")
    assert "stablehlo.scatter" in str(sdy.propagate(text).local().text)


PLACES = (0, 3, 12, 60, -7)
AT_PLACES = [
    (name, place)
    for name, (text, _) in PROGRAMS.items()
    for place in (PLACES if "dense<5>" in text or "%i: tensor<i32>" in text else PLACES[:1])
]
"""The programs, those that read or write at a place that can be another with each place."""


@pytest.mark.slow
@pytest.mark.parametrize(("name", "place"), AT_PLACES)
def test_results_are_those_of_one_device(name: str, place: int) -> None:
    """At places inside and outside, with sizes that do not divide, and with poisoned padding."""
    pytest.importorskip("jax", reason="programs run through XLA")
    text = (
        PROGRAMS[name][0].replace("dense<5>", f"dense<{place}>").replace("52x4", "51x4").replace("[52, 4]", "[51, 4]")
    )
    text = text.replace("64x4", "63x4").replace("dense<64>", "dense<63>").replace("128x4", "126x4")
    arguments = sdy.propagate(text).main.regions[0].block.arguments
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=item.shape).astype(np.float32) if item.shape else np.int32(place) for item in arguments]
    compare_padded(text, *arrays)
