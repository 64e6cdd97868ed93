"""Exponentials and the hyperbolic tangent on the host."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.unit.kernels.lower.host_functions import host_results, units

pytest.importorskip("jaxlib", reason="fusions are read through the extra 'stablehlo'")
pytest.importorskip("xdsl", reason="kernels need the extra 'codegen'")
pytest.importorskip("llvmlite", reason="machine code needs the extra 'codegen'")

TYPES = {"f32": np.float32, "f64": np.float64}
SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e30, -1e30, 1e-30, -1e-30, 88.72283, 88.72284, -103.9, -104.0]
FAR_FROM_EXACT = [0.356449700121785, 0.37614164502928493, 0.12486744540580605]
# Beyond these numbers exponentials are infinite and 0.
RANGES = {"f32": (-106, 90), "f64": (-748, 711)}


def numbers(type_: str) -> Any:
    """Numbers of every size, and special ones."""
    near = np.concatenate([np.linspace(-2, 2, 4001), np.linspace(-1e-3, 1e-3, 999)])
    return np.concatenate([np.linspace(*RANGES[type_], 20001), near, SPECIAL, FAR_FROM_EXACT]).astype(TYPES[type_])


@pytest.mark.parametrize("type_", TYPES)
@pytest.mark.parametrize(
    ("op", "function", "most"),
    [("stablehlo.exponential", np.exp, 1), ("stablehlo.exponential_minus_one", np.expm1, 5)],
)
def test_exponentials(op: str, function: Any, most: int, type_: str) -> None:
    """Results are near the exact ones: small, subnormal, infinite and 0 where these are."""
    x = numbers(type_)
    with np.errstate(over="ignore"):
        want = function(x.astype(np.longdouble)).astype(x.dtype)
    assert units(host_results(op, x, type_), want) <= most


def test_hyperbolic_tangent_of_doubles() -> None:
    """Results are near the exact ones, 1 and -1 where numbers are large."""
    x = np.concatenate([numbers("f64"), np.linspace(-0.7, 0.7, 999), np.linspace(-25, 25, 999)])
    want = np.tanh(x.astype(np.longdouble)).astype(np.float64)
    assert units(host_results("stablehlo.tanh", x, "f64"), want) <= 5


def test_powers_of_two() -> None:
    """What stands for the exponential of a bf16, a power of two in f32, is off by a unit of bf16 at most."""
    x = np.concatenate([np.linspace(-100, 89, 999), SPECIAL]).astype(ml_dtypes.bfloat16)
    with np.errstate(over="ignore"):
        want = np.exp(x.astype(np.float64)).astype(ml_dtypes.bfloat16)
    assert units(host_results("stablehlo.exponential", x, "bf16"), want) <= 1
