"""The exponential and the logarithm on the host."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from shardy_py.kernels import emit
from tests.unit.kernels.fusions import fusion_of

pytest.importorskip("jaxlib", reason="fusions are read through the extra 'stablehlo'")
pytest.importorskip("xdsl", reason="kernels need the extra 'codegen'")
pytest.importorskip("llvmlite", reason="machine code needs the extra 'codegen'")

EXPONENTIAL = """
func.func @main(%x: tensor<{n}x{type}>) -> tensor<{n}x{type}> {{
  %0 = stablehlo.exponential %x : tensor<{n}x{type}>
  return %0 : tensor<{n}x{type}>
}}"""
SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e30, -1e30, 88.72283, 88.72284, -103.9, -104.0]


def exponentials(x: np.ndarray, type_: str) -> np.ndarray:
    """The exponentials of an array on the host."""
    (actual,) = emit(fusion_of(EXPONENTIAL.format(n=len(x), type=type_))).run(x, on="host")
    return np.asarray(actual)


def test_it_is_off_by_one_unit_at_most() -> None:
    """Results are the nearest f32 or its neighbour: small, subnormal, infinite and 0 where the exact ones are."""
    x = np.concatenate([np.linspace(-106, 90, 20001), SPECIAL]).astype(np.float32)
    with np.errstate(over="ignore"):
        want = np.exp(x.astype(np.float64)).astype(np.float32)
    actual = exponentials(x, "f32")
    apart = np.abs(actual.view(np.int32).astype(np.int64) - want.view(np.int32).astype(np.int64))
    assert apart[~np.isnan(x)].max() <= 1
    np.testing.assert_array_equal(np.isnan(actual), np.isnan(x))


def test_powers_of_two() -> None:
    """What stands for the exponential of a bf16, a power of two in f32, is off by a unit of bf16 at most."""
    x = np.concatenate([np.linspace(-100, 89, 999), SPECIAL]).astype(ml_dtypes.bfloat16)
    with np.errstate(over="ignore"):
        want = np.exp(x.astype(np.float64)).astype(ml_dtypes.bfloat16)
    actual = exponentials(x, "bf16")
    apart = np.abs(actual.view(np.int16).astype(np.int32) - want.view(np.int16).astype(np.int32))
    assert apart[~np.isnan(x)].max() <= 1
    np.testing.assert_array_equal(np.isnan(actual), np.isnan(x))


pytest.importorskip("jaxlib", reason="fusions are read through the extra 'stablehlo'")
pytest.importorskip("xdsl", reason="kernels need the extra 'codegen'")
pytest.importorskip("llvmlite", reason="machine code needs the extra 'codegen'")

LOGARITHM = """
func.func @main(%x: tensor<{n}x{type}>) -> tensor<{n}x{type}> {{
  %0 = stablehlo.log %x : tensor<{n}x{type}>
  return %0 : tensor<{n}x{type}>
}}"""
SPECIAL_LOGARITHMS = [0.0, -0.0, np.inf, -np.inf, np.nan, -1.0, 1.0, 1e-45, 1.1754942e-38, 1.1754944e-38, 3.4028235e38]


def logarithms(x: np.ndarray, type_: str) -> np.ndarray:
    """The logarithms of an array on the host."""
    (actual,) = emit(fusion_of(LOGARITHM.format(n=len(x), type=type_))).run(x, on="host")
    return np.asarray(actual)


def units(actual: np.ndarray, want: np.ndarray, bits: str) -> int:
    """The largest distance in units of the last place, of two arrays with NaNs at the same places."""
    np.testing.assert_array_equal(np.isnan(actual), np.isnan(want))
    known = ~np.isnan(want)
    return int(np.abs(actual.view(bits)[known].astype(np.int64) - want.view(bits)[known].astype(np.int64)).max())


def test_it_is_off_by_two_units_at_most() -> None:
    """Results are near the exact ones for numbers of every size, around 1 too; the others are infinite or no number."""
    numbers = (np.exp(np.linspace(-103, 88.7, 20001)), np.linspace(0.4, 2.1, 20001), 1 + np.linspace(-1e-3, 1e-3, 999))
    x = np.concatenate([*numbers, SPECIAL_LOGARITHMS]).astype(np.float32)
    with np.errstate(all="ignore"):
        want = np.log(x.astype(np.float64)).astype(np.float32)
    assert units(logarithms(x, "f32"), want, "int32") <= 2


def test_logarithms_to_base_two() -> None:
    """What stands for the logarithm of a bf16, one to base two in f32, is off by a unit of bf16 at most."""
    x = np.concatenate([np.exp(np.linspace(-80, 80, 999)), SPECIAL_LOGARITHMS]).astype(ml_dtypes.bfloat16)
    with np.errstate(all="ignore"):
        want = np.log(x.astype(np.float64)).astype(ml_dtypes.bfloat16)
    assert units(logarithms(x, "bf16"), want, "int16") <= 1
