"""Functions of arrays on the host, and how far they are from the exact ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from shardy_py.kernels import emit
from tests.unit.kernels.fusions import fusion_of

_TEXT = """
func.func @main(%x: tensor<{n}x{type}>) -> tensor<{n}x{type}> {{
  %0 = {op} %x : tensor<{n}x{type}>
  return %0 : tensor<{n}x{type}>
}}"""
_BITS = {2: np.int16, 4: np.int32, 8: np.int64}


def host_results(op: str, x: Any, type_: str) -> Any:
    """What a kernel of one op computes on the host."""
    (actual,) = emit(fusion_of(_TEXT.format(n=len(x), type=type_, op=op))).run(x, on="host")
    return np.asarray(actual)


def units(actual: Any, want: Any) -> int:
    """The largest distance in units of the last place, of two arrays with the same NaNs and signs of zeros."""
    np.testing.assert_array_equal(np.isnan(actual), np.isnan(want))
    np.testing.assert_array_equal(np.signbit(actual)[want == 0], np.signbit(want)[want == 0])
    known = ~np.isnan(want)
    bits = _BITS[want.dtype.itemsize]
    apart = actual.view(bits)[known].astype(np.int64) - want.view(bits)[known].astype(np.int64)
    return int(np.abs(apart).max())
