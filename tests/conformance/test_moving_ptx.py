"""PTX of transposes, concatenates and updates in place: right in the emulator, without races, as wide as XLA's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytest.importorskip("llvmlite", reason="PTX needs the extra 'codegen'")

from shardy_py.kernels.fusion.choose import slices_of
from shardy_py.kernels.fusion.fusion import element_type_of, shape_of
from shardy_py.kernels.kernel import Kernel, emit
from shardy_py.kernels.requirements import find_libdevice
from tests.conformance.sample import sample
from tests.conformance.test_kernel_ptx import JUDGE, judge, widest
from tests.conformance.test_kernel_runs import difference, ops_of
from tests.conformance.test_kernels import FILE, REQUIRED, name_of
from tests.conformance.test_moving_kernels import initial_module, moving
from tests.conformance.xla_cpu import DTYPES, random_array, run_on_xla

pytestmark = [
    pytest.mark.conformance,
    pytest.mark.skipif(not FILE.exists(), reason="the reference's kernels are not beside the project"),
    pytest.mark.skipif(JUDGE.name != "judge", reason="the emulator of PTX is not beside the reference's kernels"),
    pytest.mark.skipif(find_libdevice() is None, reason="libdevice is not installed (nvidia-cuda-nvcc-cu12)"),
]

STEP = 3
# Instructions that the emulator runs for one kernel at most; what is longer is named in the test's report.
MOST_WORK = 1e6


def ran(kernel: Kernel, arrays: list[Any]) -> list[Any]:
    """The results of a kernel in the emulator; one that is updated in place is the memory of its operand."""
    fusion, count = kernel.fusion, len(arrays)
    slices = slices_of(fusion, kernel.choice)
    memory = {slice_: np.array(array) for slice_, array in zip(slices, arrays, strict=False)}
    for root, slice_ in zip(fusion.roots, slices[count:], strict=True):
        memory.setdefault(slice_, np.zeros(shape_of(root), np.dtype(DTYPES[element_type_of(root)])))
    buffers = [memory[slice_] for slice_ in slices]
    judge("ptxrun").run(kernel.ptx, kernel.name, kernel.launch.blocks, kernel.launch.threads, buffers)
    return buffers[count:]


def test_ptx_computes_what_xla_computes(record_property: Callable[[str, object], None]) -> None:
    """In the emulator, which finds races and accesses outside of buffers, every small kernel is right."""
    wrong, left_out, seen = {}, [], 0
    for golden, fusion, choice in sample(moving(), STEP):
        kernel, name = emit(fusion), name_of(golden)
        facts = judge("facts").ptx_facts(kernel.ptx, kernel.name)
        if np.prod(kernel.launch.blocks) * np.prod(kernel.launch.threads) * facts["instructions"] > MOST_WORK:
            left_out.append(name)
            continue
        seen += 1
        rng = np.random.default_rng(seen)
        arrays = [random_array(shape_of(value), element_type_of(value), rng) for value in fusion.parameters]
        ops = ops_of(initial_module(fusion, choice))
        for want, got in zip(run_on_xla(golden["fused_stablehlo"], arrays), ran(kernel, arrays), strict=True):
            if problem := difference(fusion, ops, want, got):
                wrong[name] = problem
    record_property("left out by size", left_out)
    assert wrong == {}
    assert seen > 3


def test_ptx_is_as_wide_as_xlas() -> None:
    """Loads and stores are as wide as XLA's, and barriers and shared memory are XLA's, in 98 % of the kernels."""
    other, seen = {}, 0
    for golden, fusion, _ in sample(moving(), STEP):
        seen += 1
        kernel = emit(fusion)
        facts, theirs = judge("facts").ptx_facts(kernel.ptx, kernel.name), golden["ptx"]
        kinds = ("ld.global", "st.global")
        is_narrow = any(widest(facts["memory"], kind) < widest(theirs["memory"], kind) for kind in kinds)
        if is_narrow or any(facts[key] != theirs[key] for key in ("barriers", "shared_bytes")):
            other[name_of(golden)] = (facts, theirs)
    assert len(other) <= (1 - REQUIRED) * seen, other
