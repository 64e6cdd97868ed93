"""Every stage of a loop kernel computes the same bits as the kernel before any pass."""

from __future__ import annotations

from itertools import count
from math import inf, prod

import numpy as np
import pytest

pytest.importorskip("xdsl", reason="kernels need the extra 'codegen'")

from xdsl.dialects import builtin

from shardy_py.errors import ShardyError
from shardy_py.kernels.device import H100
from shardy_py.kernels.dialect.text import print_kernel_module
from shardy_py.kernels.fusion.fusion import Fusion, element_type_of, shape_of
from shardy_py.kernels.launch.launches import launch_of
from shardy_py.kernels.passes.pipeline import LOOP_PIPELINE
from shardy_py.kernels.run.kernel import run_kernel
from tests.conformance.test_kernel_runs import OF_LARGEST, loop_module, some_loop_kernels
from tests.conformance.test_kernels import FILE
from tests.conformance.xla_cpu import DTYPES, is_equal, random_array, relative
from tests.unit.kernels.module_texts import run_loop_pipeline

pytestmark = [
    pytest.mark.conformance,
    pytest.mark.skipif(not FILE.exists(), reason="the reference's kernels are not beside the project"),
]

# Kernels of more elements run after the last pass only, and those beyond the second bound not at all: what stages do
# to a kernel does not depend on how many blocks it has. A pass that changes nothing needs no run.
MOST_FOR_ALL_STAGES, MOST_ELEMENTS = 1 << 17, 1 << 22

# Passes that put formulas in the place of functions; what comes after them gives the same bits again.
APPROXIMATING = ("complex-to-standard", "convert-float", "expand-float")


def problems(fusion: Fusion, choice: object, name: str, *, all_stages: bool) -> list[str]:
    """The stages that compute something else, or nothing."""
    launch = launch_of(fusion, choice, H100)  # type: ignore[arg-type]
    rng = np.random.default_rng(len(name))
    arrays = [random_array(shape_of(value), element_type_of(value), rng) for value in fusion.parameters]
    outputs = [(shape_of(root), np.dtype(DTYPES[element_type_of(root)])) for root in fusion.roots]
    module = loop_module(fusion, choice)
    expected = run_kernel(module, launch, arrays, outputs)
    collected: list[str] = []
    before, numbers = print_kernel_module(module), count()

    def check(pass_name: str, module: builtin.ModuleOp) -> None:
        nonlocal before
        number = next(numbers)
        text = print_kernel_module(module)
        is_due = text != before if all_stages else number == len(LOOP_PIPELINE) - 1
        before = text
        if not is_due:
            return
        stage = f"{name} after {number} {pass_name}"
        slices = range(len(arrays) + len(outputs))
        try:
            results = run_kernel(module, launch, arrays, outputs, stage=pass_name, slices=slices)
        except ShardyError as error:
            collected.append(f"{stage}: {error}")
            return
        is_approximation = not all_stages or pass_name in APPROXIMATING
        for want, got in zip(expected, results, strict=True):
            if is_equal(want, got):
                continue
            apart = relative(want, got) if is_approximation and want.dtype.kind not in "biu" else inf
            if apart > OF_LARGEST:
                collected.append(f"{stage}: other values, by {apart} units of the largest element")
        expected[:] = results

    run_loop_pipeline(module, check)
    return collected


def test_stages_compute_the_same() -> None:
    """No pass changes what a loop kernel computes, nor makes it access memory that it must not."""
    wrong: list[str] = []
    seen = 0
    for name, _, fusion, choice in some_loop_kernels():
        elements = max(prod(shape_of(root)) for root in fusion.roots)
        if elements <= MOST_ELEMENTS:
            seen += 1
            wrong += problems(fusion, choice, name, all_stages=elements <= MOST_FOR_ALL_STAGES)
    assert wrong == []
    assert seen > 20


def test_chunks_of_threads_compute_the_same() -> None:
    """At the last stage, with branches between blocks, nothing depends on how many threads run at once."""
    wrong: list[str] = []
    seen = 0
    for name, _, fusion, choice in some_loop_kernels():
        if max(prod(shape_of(root)) for root in fusion.roots) > 1 << 14:
            continue
        launch = launch_of(fusion, choice, H100)
        rng = np.random.default_rng(len(name))
        arrays = [random_array(shape_of(value), element_type_of(value), rng) for value in fusion.parameters]
        outputs = [(shape_of(root), np.dtype(DTYPES[element_type_of(root)])) for root in fusion.roots]
        module = loop_module(fusion, choice)
        run_loop_pipeline(module)
        slices = range(len(arrays) + len(outputs))
        expected = run_kernel(module, launch, arrays, outputs, slices=slices)
        seen += "cf.cond_br" in print_kernel_module(module)
        results = run_kernel(module, launch, arrays, outputs, slices=slices, chunk=128)
        wrong += [name for want, got in zip(expected, results, strict=True) if not is_equal(want, got)]
    assert wrong == []
    assert seen > 5
