"""TOSA: modules in its usual format are read, and compute on devices what they compute on whole tensors."""

from __future__ import annotations

import pytest

pytest.importorskip("jaxlib", reason="MLIR reads the modules")

import shardy_py as sdy
from shardy_dialects.tosa.functions import FUNCTIONS
from shardy_py.testing import run_sharded
from tests.unit.dialects.tosa.modules import MODULES, main


@pytest.mark.parametrize("name", MODULES)
def test_a_module_runs_on_devices(name: str) -> None:
    """Each module gives on four devices what it gives on whole tensors, and no op lacks a rule."""
    text, shardings = MODULES[name]
    assert sdy.propagate(text, {"d": 2, "m": 2}).coverage.is_complete
    run = run_sharded(text, FUNCTIONS, {"d": 2, "m": 2}, in_shardings=shardings)
    assert run.ok, run.difference
    assert run.gathered == ()


def test_columns_and_rows_need_one_sum() -> None:
    """A product by columns, then by rows, sends one sum, also behind a reshape with a shape of its own."""
    text, shardings = MODULES["perceptron"]
    result = sdy.propagate(text, {"d": 2, "m": 2}, in_shardings=shardings, explicit_collectives=True)
    assert result.text.count("sdy.all_reduce") == 1
    assert str(result.results[0]) == '<@mesh, [{"d"}, {}, {}]>'


@pytest.mark.parametrize("name", ["convolution", "strided", "depthwise"])
def test_space_is_sharded_by_halos(name: str) -> None:
    """Windows over sharded rows and columns read what neighbours send, in uneven parts, too; padding counts."""
    run = run_sharded(MODULES[name][0], FUNCTIONS, {"d": 2, "m": 3}, in_shardings={0: (None, "m", "d", None)})
    assert run.ok, run.difference
    assert set(run.collectives) == {"windows"}


def test_padded_averages_need_whole_space() -> None:
    """What an average divides by depends on the padding, so that padded dimensions are gathered, and others are not."""
    image = "tensor<2x8x8x4xf32>"
    pooled = f"""%0 = tosa.avg_pool2d %arg0, %z, %z {{
      acc_type = f32, kernel = array<i64: 3, 1>, pad = array<i64: 1, 1, 0, 0>, stride = array<i64: 1, 1>
    }} : ({image}, !z, !z) -> {image}
    return %0 : {image}"""
    zero = '%z = "tosa.const"() <{values = dense<0.0> : tensor<1xf32>}> : () -> !z\n'
    text = main("2x8x8x4xf32", "2x8x8x4xf32", zero + pooled)
    rows = sdy.propagate(text, {"d": 2}, in_shardings={0: (None, "d", None, None)})
    columns = sdy.propagate(text, {"d": 2}, in_shardings={0: (None, None, "d", None)})
    assert rows.results[0] is None
    assert str(columns.results[0]) == '<@mesh, [{}, {}, {"d"}, {}]>'


def test_space_of_images_with_dynamic_sizes_is_gathered() -> None:
    """What neighbours send needs the sizes: without them space is gathered, and the program becomes local."""
    text = MODULES["depthwise"][0].replace("2x4x4x", "?x4x4x")
    result = sdy.propagate(text, {"d": 2}, in_shardings={0: (None, "d", None, None)})
    assert "stablehlo.all_gather" in result.local().text


_IMAGE, _ONE = "tensor<2x8x8x4xf32>", "tensor<1xf32>"
_CONVOLUTIONS = {
    "depthwise_conv2d": (
        "3x3x4x2",
        "2x8x8x8",
        "dilation = array<i64: 1, 1>, pad = array<i64: 1, 1, 1, 1>, stride = array<i64: 1, 1>",
        2 * (2 * 8 * 8 * 8) * (3 * 3),
    ),
    "transpose_conv2d": (
        "8x3x3x4",
        "2x10x10x8",
        "out_pad = array<i64: 0, 0, 0, 0>, stride = array<i64: 1, 1>",
        2 * (2 * 8 * 8 * 4) * (8 * 3 * 3),
    ),
}


@pytest.mark.parametrize("name", _CONVOLUTIONS)
def test_operations_of_convolutions_are_two_for_each_product(name: str) -> None:
    """A device has its share of the sequences."""
    kernel, result, attributes, count = _CONVOLUTIONS[name]
    types = f"{_IMAGE}, tensor<{kernel}xf32>, tensor<8xf32>, {_ONE}, {_ONE}"
    text = main(
        f"2x8x8x4xf32 {kernel}xf32 8xf32",
        f"{result}xf32",
        f"""%z = "tosa.const"() <{{values = dense<0.0> : {_ONE}}}> : () -> {_ONE}
    %0 = tosa.{name} %arg0, %arg1, %arg2, %z, %z {{acc_type = f32, {attributes}}} : ({types}) -> tensor<{result}xf32>
    return %0 : tensor<{result}xf32>""",
    )
    cost = sdy.propagate(text, {"d": 2}, in_shardings={0: ("d",)}).cost(machine="cpu-8")
    assert (cost.total_flops.value, cost.flops.value) == (count, count / 2)
