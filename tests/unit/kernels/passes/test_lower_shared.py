"""Allocations of shared memory."""

from __future__ import annotations

import pytest

pytest.importorskip("xdsl", reason="kernels need the extra 'codegen'")

from shardy_py.kernels.passes.shared_memory import LowerShared
from tests.unit.kernels.module_texts import after, function

TILE = function(
    """%r = scf.if %c -> (tensor<64xf32>) {
      %s = xla_gpu.allocate_shared : tensor<32x33xf32>
      %t = xla_gpu.allocate_shared : tensor<8xf32>
      scf.yield %o : tensor<64xf32>
    } else {
      scf.yield %o : tensor<64xf32>
    }"""
)


def test_allocations_stand_at_the_begin() -> None:
    """Tiles are allocated once, before any branch, in the order in which they were."""
    found = after(TILE, LowerShared())
    places = [found.index(text) for text in ("tensor<32x33xf32>", "tensor<8xf32>", "scf.if")]
    assert places == sorted(places)
    assert found.count("allocate_shared") == 2
