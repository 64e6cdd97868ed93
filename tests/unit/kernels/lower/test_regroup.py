"""Steps of loops that all threads of a block run before the next one, on the host."""

from __future__ import annotations

import pytest

pytest.importorskip("jaxlib", reason="fusions are read through the extra 'stablehlo'")
pytest.importorskip("xdsl", reason="kernels need the extra 'codegen'")
pytest.importorskip("llvmlite", reason="machine code needs the extra 'codegen'")

import numpy as np

from shardy_py.kernels import emit
from shardy_py.kernels.entry.arguments import ENTRY
from shardy_py.kernels.kernel import Kernel
from shardy_py.kernels.lower.phases import Phases, split_phases
from shardy_py.kernels.passes.base import functions
from tests.unit.kernels.fusions import fusion_of

LARGEST = """
func.func @main(%x: tensor<{rows}x{columns}xf32>) -> tensor<{columns}xf32> {{
  %c = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %c) applies stablehlo.maximum across dimensions = [0]
    : (tensor<{rows}x{columns}xf32>, tensor<f32>) -> tensor<{columns}xf32>
  return %0 : tensor<{columns}xf32>
}}"""
SUM = """
func.func @main(%x: tensor<300x20xf32>) -> tensor<300xf32> {
  %c = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %c) applies stablehlo.add across dimensions = [1]
    : (tensor<300x20xf32>, tensor<f32>) -> tensor<300xf32>
  return %0 : tensor<300xf32>
}"""


def phases_of(kernel: Kernel) -> Phases:
    """The phases of a kernel."""
    (entry,) = (function for function in functions(kernel.module()) if ENTRY in function.attributes)
    return split_phases(entry)


@pytest.mark.parametrize(("rows", "columns"), [(1024, 64), (1024, 100), (2500, 100)])
def test_columns_are_walked_down_together(rows: int, columns: int) -> None:
    """The loop over rows is phases, also where some threads have no column; NaNs and the last rows count."""
    kernel = emit(fusion_of(LARGEST.format(rows=rows, columns=columns)))
    phases = phases_of(kernel)
    assert len(phases.counters) == 1
    assert not set(phases.counters) & set(phases.slots)
    x = np.random.default_rng(rows).normal(0, 1, (rows, columns)).astype(np.float32)
    x[3, 2], x[-1, -1] = np.nan, 9
    np.testing.assert_array_equal(kernel.run(x, on="host")[0], x.max(axis=0))


def test_threads_that_never_wait_walk_alone() -> None:
    """A kernel without barriers has one phase, whatever loops it has."""
    kernel = emit(fusion_of(SUM))
    assert any(op.name == "cf.cond_br" for op in kernel.module().walk())
    phases = phases_of(kernel)
    assert len(phases.phases) == 1
    assert not phases.counters
