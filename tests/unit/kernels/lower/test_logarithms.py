"""Logarithms on the host."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tests.unit.kernels.lower.host_functions import host_results, units

pytest.importorskip("jaxlib", reason="fusions are read through the extra 'stablehlo'")
pytest.importorskip("xdsl", reason="kernels need the extra 'codegen'")
pytest.importorskip("llvmlite", reason="machine code needs the extra 'codegen'")

SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, -1.0, 1.0, 1e-45, 1.1754942e-38, 1.1754944e-38, 3.4028235e38]


def test_it_is_off_by_two_units_at_most() -> None:
    """Results are near the exact ones for numbers of every size, around 1 too; the others are infinite or no number."""
    numbers = (np.exp(np.linspace(-103, 88.7, 20001)), np.linspace(0.4, 2.1, 20001), 1 + np.linspace(-1e-3, 1e-3, 999))
    x = np.concatenate([*numbers, SPECIAL]).astype(np.float32)
    with np.errstate(all="ignore"):
        want = np.log(x.astype(np.float64)).astype(np.float32)
    assert units(host_results("stablehlo.log", x, "f32"), want) <= 2


def test_logarithms_of_one_plus_a_number() -> None:
    """Results are near the exact ones for numbers of every size and both signs, where 1 and the number is 1 too."""
    sizes = np.exp(np.linspace(-103, 88.7, 20001))
    x = np.concatenate([sizes, -sizes[sizes < 1.1], np.linspace(-1, 2, 20001), [-2.0, *SPECIAL]]).astype(np.float32)
    with np.errstate(all="ignore"):
        want = np.log1p(x.astype(np.float64)).astype(np.float32)
    assert units(host_results("stablehlo.log_plus_one", x, "f32"), want) <= 2


def test_logarithms_to_base_two() -> None:
    """What stands for the logarithm of a bf16, one to base two in f32, is off by a unit of bf16 at most."""
    x = np.concatenate([np.exp(np.linspace(-80, 80, 999)), SPECIAL]).astype(ml_dtypes.bfloat16)
    with np.errstate(all="ignore"):
        want = np.log(x.astype(np.float64)).astype(ml_dtypes.bfloat16)
    assert units(host_results("stablehlo.log", x, "bf16"), want) <= 1
