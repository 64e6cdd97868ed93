"""TOSA: modules in its usual format are read, and compute on devices what they compute on whole tensors."""

from __future__ import annotations

import pytest

pytest.importorskip("jaxlib", reason="MLIR reads the modules")

import numpy as np

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


def test_products_of_integers_do_not_wrap() -> None:
    """Sums of products of bytes have the numbers of the result's type, and `shift` divides, half up."""
    text = main(
        "1x2x40xi8 1x40x2xi8 2x2xi32 1x1x1x2xi8",
        "1x2x2xi32 2x2xi32 1x1x1x2xi8",
        """
      %z = "tosa.const"() <{values = dense<1> : tensor<1xi8>}> : () -> tensor<1xi8>
      %s = "tosa.const"() <{values = dense<3> : tensor<1xi8>}> : () -> tensor<1xi8>
      %0 = tosa.matmul %arg0, %arg1, %z, %z
          : (tensor<1x2x40xi8>, tensor<1x40x2xi8>, tensor<1xi8>, tensor<1xi8>) -> tensor<1x2x2xi32>
      %1 = tosa.mul %arg2, %arg2, %s : (tensor<2x2xi32>, tensor<2x2xi32>, tensor<1xi8>) -> tensor<2x2xi32>
      %2 = tosa.negate %arg3, %z, %z : (tensor<1x1x1x2xi8>, tensor<1xi8>, tensor<1xi8>) -> tensor<1x1x1x2xi8>
      return %0, %1, %2 : tensor<1x2x2xi32>, tensor<2x2xi32>, tensor<1x1x1x2xi8>""",
    )
    matrices = np.full((1, 2, 40), 101, np.int8), np.full((1, 40, 2), 101, np.int8)
    others = np.full((2, 2), 70000, np.int32), np.array([[[[-128, 5]]]], np.int8)
    run = run_sharded(text, FUNCTIONS, {"m": 2}, *matrices, *others, in_shardings={0: (None, None, "m")})
    assert run.ok, run.difference
    product, scaled, negated = run.results
    assert (product == 400000).all()
    assert (scaled == 612500000).all()
    assert negated.ravel().tolist() == [127, -3]


def test_windows_of_integers_do_not_wrap() -> None:
    """Convolutions of bytes add up numbers of 32 bits, and averages are rounded."""
    attributes = "pad = array<i64: 0, 0, 0, 0>, stride = array<i64: 2, 2>"
    text = main(
        "1x4x4x8xi8 2x2x2x8xi8 2xi32",
        "1x2x2x2xi32 1x2x2x8xi8",
        f"""
      %z = "tosa.const"() <{{values = dense<0> : tensor<1xi8>}}> : () -> tensor<1xi8>
      %0 = tosa.conv2d %arg0, %arg1, %arg2, %z, %z {{
        acc_type = i32, dilation = array<i64: 1, 1>, {attributes}
      }} : (tensor<1x4x4x8xi8>, tensor<2x2x2x8xi8>, tensor<2xi32>, tensor<1xi8>, tensor<1xi8>) -> tensor<1x2x2x2xi32>
      %1 = tosa.avg_pool2d %arg0, %z, %z {{acc_type = i32, kernel = array<i64: 2, 2>, {attributes}}}
          : (tensor<1x4x4x8xi8>, tensor<1xi8>, tensor<1xi8>) -> tensor<1x2x2x8xi8>
      return %0, %1 : tensor<1x2x2x2xi32>, tensor<1x2x2x8xi8>""",
    )
    image = np.where(np.arange(128).reshape(1, 4, 4, 8) % 16 < 8, 100, 101).astype(np.int8)
    inputs = image, np.full((2, 2, 2, 8), 10, np.int8), np.array([7, 8], np.int32)
    run = run_sharded(text, FUNCTIONS, {"m": 2}, *inputs, in_shardings={0: (None, "m", None, None)})
    assert run.ok, run.difference
    sums, averages = run.results
    assert sums[0, 0, 0].tolist() == [32167, 32168]
    assert averages.dtype == np.int8
    assert (averages == 101).all()
