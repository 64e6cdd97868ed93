"""Floats of 8 bits have the values of ml_dtypes on every machine."""

from __future__ import annotations

import pytest

pytest.importorskip("llvmlite", reason="kernels on the host need the extra 'codegen'")

import ml_dtypes
import numpy as np

from shardy_py.kernels import read_fusion
from shardy_py.kernels.kernel import emit

KINDS = {
    "f8E4M3FN": ml_dtypes.float8_e4m3fn,
    "f8E5M2": ml_dtypes.float8_e5m2,
    "f8E4M3FNUZ": ml_dtypes.float8_e4m3fnuz,
}
CONVERT = """
func.func @main(%arg0: tensor<{size}x{source}>) -> tensor<{size}x{target}> {{
  %0 = stablehlo.convert %arg0 : (tensor<{size}x{source}>) -> tensor<{size}x{target}>
  return %0 : tensor<{size}x{target}>
}}
"""
ADD = """
func.func @main(%arg0: tensor<256xf8E4M3FN>, %arg1: tensor<256xf8E4M3FN>) -> tensor<256xf8E4M3FN> {
  %0 = stablehlo.constant dense<1.6> : tensor<256xf8E4M3FN>
  %1 = stablehlo.multiply %arg1, %0 : tensor<256xf8E4M3FN>
  %2 = stablehlo.add %arg0, %1 : tensor<256xf8E4M3FN>
  return %2 : tensor<256xf8E4M3FN>
}
"""
MACHINES = ("interpreter", "host")


def bits(array: np.ndarray) -> np.ndarray:
    """The bits of floats, those of all NaNs alike."""
    with np.errstate(invalid="ignore"):
        wide = array.astype(np.float64)
    return np.where(np.isnan(wide), 0, wide.view(np.uint64))


@pytest.mark.parametrize("name", KINDS)
def test_every_code_is_read(name: str) -> None:
    """All 256 codes, subnormals, infinities and NaNs among them, are the numbers that the format says."""
    codes = np.arange(256, dtype=np.uint8).view(KINDS[name])
    kernel = emit(read_fusion(CONVERT.format(size=256, source=name, target="f32")))
    for machine in MACHINES:
        (found,) = kernel.run(codes, on=machine)
        assert (bits(found) == bits(codes)).all(), machine


@pytest.mark.parametrize("name", KINDS)
def test_numbers_are_rounded_to_the_nearest(name: str) -> None:
    """Numbers between two codes become the nearer one, halves the even one, those beyond the last one no number."""
    known = np.arange(256, dtype=np.uint8).view(KINDS[name]).astype(np.float32)
    finite = np.sort(known[np.isfinite(known)])
    halves = (finite[1:] + finite[:-1]) / np.float32(2)
    near = [np.nextafter(halves, np.float32(side)) for side in (-np.inf, np.inf)]
    beyond = np.float32([np.inf, -np.inf, np.nan, 1e6, -1e6, 465, 464, 1e-30, -1e-30, -0.0])
    numbers = np.concatenate([finite, halves, *near, beyond]).astype(np.float32)
    kernel = emit(read_fusion(CONVERT.format(size=numbers.size, source="f32", target=name)))
    for machine in MACHINES:
        (found,) = kernel.run(numbers, on=machine)
        assert (bits(found) == bits(numbers.astype(KINDS[name]))).all(), machine


def test_arithmetic_rounds_every_result() -> None:
    """Products and sums are those of the type: computed as f32, then rounded, as are constants."""
    rng = np.random.default_rng(0)
    one, other = (rng.integers(0, 256, 256, np.uint8).view(ml_dtypes.float8_e4m3fn) for _ in range(2))
    (found,) = emit(read_fusion(ADD)).run(one, other)
    assert (bits(found) == bits(one + other * ml_dtypes.float8_e4m3fn(1.6))).all()
