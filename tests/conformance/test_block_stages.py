"""Every stage of kernels of any size computes the same: some of its blocks run in the interpreter."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import pytest

pytest.importorskip("xdsl", reason="kernels need the extra 'codegen'")

from xdsl.dialects import builtin

from shardy_py.kernels.dialect.text import print_kernel_module
from shardy_py.kernels.fusion.choose import Choice, slices_of
from shardy_py.kernels.fusion.fusion import Fusion, element_type_of, shape_of
from shardy_py.kernels.kernel import emit
from shardy_py.kernels.run.kernel import run_kernel
from tests.conformance.sample import sample
from tests.conformance.test_kernels import FILE, kernels, name_of
from tests.conformance.test_moving_kernels import initial_module
from tests.conformance.test_reduction_runs import APPROXIMATING, OF_LARGEST
from tests.conformance.xla_cpu import DTYPES, is_equal, random_array, relative

pytestmark = [
    pytest.mark.conformance,
    pytest.mark.skipif(not FILE.exists(), reason="the reference's kernels are not beside the project"),
]

# One kernel takes about a second: other tests run small kernels whole, these are the larger ones.
STEP, MOST_ELEMENTS = 75, 1 << 14


def problems(name: str, fusion: Fusion, choice: Choice) -> list[str]:
    """The stages behind which the first, a middle or the last block writes something else than before."""
    kernel = emit(fusion)
    count = prod(kernel.launch.blocks)
    blocks, slices = sorted({0, count // 2, count - 1}), slices_of(fusion, choice)
    rng = np.random.default_rng(3)
    arrays = [random_array(shape_of(value), element_type_of(value), rng) for value in fusion.parameters]
    outputs = [(shape_of(root), np.dtype(DTYPES[element_type_of(root)])) for root in fusion.roots]

    def run(module: builtin.ModuleOp, stage: str) -> list[Any]:
        return run_kernel(module, kernel.launch, arrays, outputs, stage=stage, slices=slices, blocks=blocks)

    module = initial_module(fusion, choice)
    before, known = print_kernel_module(module), run(module, "initial")
    collected: list[str] = []

    def check(pass_name: str, module: builtin.ModuleOp) -> None:
        nonlocal before
        if (text := print_kernel_module(module)) == before:
            return
        before, results = text, run(module, pass_name)
        most = OF_LARGEST if pass_name in APPROXIMATING else 0
        for want, got in zip(known, results, strict=True):
            if not is_equal(want, got) and (want.dtype.kind in "biu" or relative(want, got) > most):
                collected.append(f"{name} after {pass_name}: other values")
        known[:] = results

    kernel.module(check)
    return collected


def test_stages_of_large_kernels_compute_the_same() -> None:
    """No pass changes what blocks of a kernel compute, nor makes them race or access memory that they must not."""
    large = [item for item in kernels() if sum(prod(shape_of(value)) for value in item[1].parameters) > MOST_ELEMENTS]
    wrong: list[str] = []
    for golden, fusion, choice in sample(large, STEP):
        wrong += problems(name_of(golden), fusion, choice)
    assert wrong == []
    assert len(large) > STEP
