"""The exponential on the host."""

from __future__ import annotations

import pytest

pytest.importorskip("jaxlib", reason="fusions are read through the extra 'stablehlo'")
pytest.importorskip("xdsl", reason="kernels need the extra 'codegen'")
pytest.importorskip("llvmlite", reason="machine code needs the extra 'codegen'")

import ml_dtypes
import numpy as np

from shardy_py.kernels import emit
from tests.unit.kernels.fusions import fusion_of

EXPONENTIAL = """
func.func @main(%x: tensor<{n}x{type}>) -> tensor<{n}x{type}> {{
  %0 = stablehlo.exponential %x : tensor<{n}x{type}>
  return %0 : tensor<{n}x{type}>
}}"""
SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e30, -1e30, 88.72283, 88.72284, -103.9, -104.0]


def exponentials(x: np.ndarray, type_: str) -> np.ndarray:
    """The exponentials of an array on the host."""
    (found,) = emit(fusion_of(EXPONENTIAL.format(n=len(x), type=type_))).run(x, on="host")
    return np.asarray(found)


def test_it_is_off_by_one_unit_at_most() -> None:
    """Results are the nearest f32 or its neighbour: small, subnormal, infinite and 0 where the exact ones are."""
    x = np.concatenate([np.linspace(-106, 90, 20001), SPECIAL]).astype(np.float32)
    with np.errstate(over="ignore"):
        want = np.exp(x.astype(np.float64)).astype(np.float32)
    found = exponentials(x, "f32")
    apart = np.abs(found.view(np.int32).astype(np.int64) - want.view(np.int32).astype(np.int64))
    assert apart[~np.isnan(x)].max() <= 1
    np.testing.assert_array_equal(np.isnan(found), np.isnan(x))


def test_powers_of_two() -> None:
    """What stands for the exponential of a bf16, a power of two in f32, is off by a unit of bf16 at most."""
    x = np.concatenate([np.linspace(-100, 89, 999), SPECIAL]).astype(ml_dtypes.bfloat16)
    with np.errstate(over="ignore"):
        want = np.exp(x.astype(np.float64)).astype(ml_dtypes.bfloat16)
    found = exponentials(x, "bf16")
    apart = np.abs(found.view(np.int16).astype(np.int32) - want.view(np.int16).astype(np.int32))
    assert apart[~np.isnan(x)].max() <= 1
    np.testing.assert_array_equal(np.isnan(found), np.isnan(x))
