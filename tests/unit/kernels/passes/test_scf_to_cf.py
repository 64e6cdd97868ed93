"""Branches between blocks."""

from __future__ import annotations

import pytest

pytest.importorskip("xdsl", reason="kernels need the extra 'codegen'")

pytest.importorskip("numpy", reason="kernels need the extra 'codegen'")

import numpy as np

from shardy_py.kernels.passes.lower_tensors import LowerTensors
from shardy_py.kernels.passes.scf_to_cf import ScfToCf
from tests.unit.kernels.module_texts import after, run
from tests.unit.kernels.passes.test_lower_tensors import NESTED


def test_branches_do_what_loops_did() -> None:
    """No loop and no condition is left, and the kernel writes what it wrote."""
    lowered = after(NESTED, LowerTensors(), ScfToCf())
    assert "scf." not in lowered
    assert "cf.cond_br" in lowered
    x = np.arange(8, dtype=np.float32)
    np.testing.assert_array_equal(run(lowered, x), run(NESTED, x))
