"""Sums whose last places depend on the order: kernels add in XLA's, and are as near to the exact sums as XLA:CPU."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

pytest.importorskip("llvmlite", reason="machine code needs the extra 'codegen'")

from shardy_py.kernels import read_fusion
from shardy_py.kernels.fusion.fusion import element_type_of, shape_of
from shardy_py.kernels.kernel import Kernel, emit
from tests.conformance.test_kernels import FILE
from tests.conformance.xla_cpu import random_array, run_on_xla

pytestmark = [
    pytest.mark.conformance,
    pytest.mark.skipif(not FILE.exists(), reason="the reference's kernels are not beside the project"),
]

# Rows of 2048 numbers: threads that share one, numbers that a thread reads at once, and warps of a row.
THREADS, AT_ONCE, WARPS = 128, 4, 4


def kernel_of(case: str) -> tuple[Kernel, str]:
    """The one kernel of a case, and its StableHLO."""
    texts = (golden["fused_stablehlo"] for golden in json.loads(FILE.read_text())["fusions"] if golden["case"] == case)
    text = next(texts)
    return emit(read_fusion(text)), text


def sum_over_warp(lanes: Any) -> Any:
    """What the first lane has once each has added those 16, 8, 4, 2 and 1 behind it, each sum rounded."""
    for distance in (16, 8, 4, 2, 1):
        lanes = lanes + np.roll(lanes, -distance, axis=-1)
    return lanes[..., 0]


def sum_in_xlas_order(rows: Any) -> Any:
    """Sums of rows, as the maps of XLA's row reduction order them, with an accumulator of the elements' type."""
    read = rows.reshape(len(rows), -1, THREADS, AT_ONCE).swapaxes(1, 2).reshape(len(rows), THREADS, -1)
    total = np.zeros(read.shape[:2], rows.dtype)
    for step in range(read.shape[-1]):
        total = total + read[..., step]
    first_warp = np.zeros((len(rows), 32), rows.dtype)
    first_warp[:, :WARPS] = sum_over_warp(total.reshape(len(rows), WARPS, 32))
    return sum_over_warp(first_warp)


def arrays_of(case: str, kernel: Kernel) -> list[Any]:
    """Random arrays; the places of a scatter are sorted and few, so that each has many terms."""
    rng = np.random.default_rng(5)
    arrays = [random_array(shape_of(value), element_type_of(value), rng) for value in kernel.fusion.parameters]
    if "sorted" in case:
        arrays[1] = np.sort(rng.integers(0, 40, arrays[1].shape), axis=0).astype(arrays[1].dtype)
    return arrays


def exact_sums(arrays: list[Any]) -> Any:
    """The sums of rows, or of the updates of a place, in f64."""
    operand, *others = arrays
    if not others:
        return operand.astype(np.float64).sum(axis=1)
    actual = operand.astype(np.float64)
    np.add.at(actual, others[0][:, 0], others[1].astype(np.float64))
    return actual


@pytest.mark.parametrize("case", ["red_bf16_512x2048", "sc_add_sorted"])
def test_sums_are_within_the_references_own_spread(case: str) -> None:
    """Sums are as near to the exact ones as XLA:CPU's; those of 16-bit floats are XLA's order's, to the bit."""
    kernel, text = kernel_of(case)
    arrays = arrays_of(case, kernel)
    (actual,), (theirs,) = kernel.run(*arrays, on="host"), run_on_xla(text, arrays)
    exact = exact_sums(arrays)
    ours, xlas = (float(np.square(sums.astype(np.float64) - exact).mean()) for sums in (actual, theirs))
    assert ours <= xlas
    if actual.dtype.itemsize == 2:
        assert (actual == sum_in_xlas_order(arrays[0])).all()
