"""Floats by their bits."""

from __future__ import annotations

import math

import pytest

pytest.importorskip("jaxlib", reason="fusions are read through the extra 'stablehlo'")
pytest.importorskip("xdsl", reason="kernels need the extra 'codegen'")

import ml_dtypes
import numpy as np

from shardy_py.kernels import emit
from shardy_py.kernels.dialect.constants import float_bits, special_floats_as_bytes
from tests.unit.kernels.fusions import fusion_of

NUMBERS = (0.0, -0.0, 1.0, 0.1, -3.3, 65504.0, 1e-40, 1e30, 1e300, math.inf, -math.inf)
DTYPES = {"bf16": ml_dtypes.bfloat16, "f16": np.float16, "f32": np.float32, "f64": np.float64}
CONSTANTS = """
func.func @main(%x: tensor<4x{dtype}>) -> (tensor<4x{dtype}>, tensor<4x{dtype}>) {{
  %c = stablehlo.constant dense<[1.5, {infinity}, {nan}, -2.0]> : tensor<4x{dtype}>
  %d = stablehlo.constant dense<{infinity}> : tensor<4x{dtype}>
  %0 = stablehlo.add %x, %c : tensor<4x{dtype}>
  %1 = stablehlo.maximum %x, %d : tensor<4x{dtype}>
  return %0, %1 : tensor<4x{dtype}>, tensor<4x{dtype}>
}}"""


@pytest.mark.parametrize("value", NUMBERS)
@pytest.mark.parametrize("name", DTYPES)
def test_bits_are_those_of_the_nearest_number(value: float, name: str) -> None:
    """The bits of a float are those that numpy rounds to."""
    with np.errstate(over="ignore"):
        expected = np.array([value]).astype(DTYPES[name])
    assert float_bits(value, name) == expected.view(f"u{expected.itemsize}")[0]


def test_nan_stays_nan() -> None:
    """The bits of a NaN are those of one."""
    assert np.isnan(np.array([float_bits(math.nan, "bf16")], np.uint16).view(ml_dtypes.bfloat16)[0])


def test_other_constants_stay() -> None:
    """Constants without special floats, and integers, keep their text."""
    for text in (
        "dense<[1.0, 2.0]> : tensor<2xf32>",
        "dense<0xFF> : tensor<2xi32>",
        'dense<"0xFF80"> : tensor<1xbf16>',
    ):
        assert special_floats_as_bytes(text) == text


@pytest.mark.parametrize(
    ("name", "infinity", "nan"),
    [
        ("bf16", "0xFF80", "0x7FC0"),
        ("f16", "0xFC00", "0x7E00"),
        ("f32", "0xFF800000", "0x7FC00000"),
        ("f64", "0xFFF0000000000000", "0x7FF8000000000000"),
    ],
)
def test_special_floats_in_constants(name: str, infinity: str, nan: str) -> None:
    """Infinities and NaNs of constants are these in kernels, also in a stage that was read back."""
    kernel = emit(fusion_of(CONSTANTS.format(dtype=name, infinity=infinity, nan=nan)))
    x = np.ones(4, DTYPES[name])
    for stage in (None, "initial", "scf-to-cf"):
        total, largest = kernel.run(x, stage=stage)
        np.testing.assert_array_equal(total.astype(np.float64), [2.5, -math.inf, math.nan, -1])
        np.testing.assert_array_equal(largest.astype(np.float64), [1, 1, 1, 1])
