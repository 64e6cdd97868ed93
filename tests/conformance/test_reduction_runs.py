"""Reduction kernels compute what XLA:CPU computes: at every stage in the interpreter, and as PTX in the emulator."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from itertools import islice
from math import prod
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pytest

pytest.importorskip("llvmlite", reason="PTX needs the extra 'codegen'")

from xdsl.dialects import builtin

from shardy_py.kernels.dialect.text import print_kernel_module
from shardy_py.kernels.fusion.fusion import element_type_of, shape_of
from shardy_py.kernels.kernel import Kernel, emit
from shardy_py.kernels.requirements import find_libdevice
from shardy_py.kernels.run.kernel import run_kernel
from tests.conformance.test_kernel_ptx import DYNAMIC, JUDGE, MOST_OF_XLA, judge, ran, reference, widest
from tests.conformance.test_kernels import FILE, REQUIRED, name_of
from tests.conformance.test_reduction_kernels import initial_module, reductions
from tests.conformance.xla_cpu import DTYPES, is_equal, random_array, relative

pytestmark = [
    pytest.mark.conformance,
    pytest.mark.skipif(not FILE.exists(), reason="the reference's kernels are not beside the project"),
    pytest.mark.skipif(JUDGE.name != "judge", reason="the emulator of PTX is not beside the reference's kernels"),
]

# Every eighth kernel runs as machine code, or all of them if the environment says so.
STEP = 1 if "SHARDY_ALL_PROGRAMS" in os.environ else 8
# Elements of an operand that are reduced at every stage, and instructions that the emulator runs for one kernel.
MOST_ELEMENTS, MOST_WORK = 1 << 14, 1e6
# A formula in the place of a function is off by some units of the largest element; other passes change no bit.
APPROXIMATING, OF_LARGEST = ("complex-to-standard", "convert-float", "expand-float"), 64.0


def arrays_of(kernel: Kernel) -> list[Any]:
    """Random arrays for the parameters of a kernel."""
    values = kernel.fusion.parameters
    rng = np.random.default_rng(len(values))
    return [random_array(shape_of(value), element_type_of(value), rng) for value in values]


def is_right(want: Any, got: Any, name: str) -> bool:
    """Whether a result is XLA:CPU's: integers are equal, sums of floats as near as the reference asks for."""
    return float(judge("expected").compare(want, got, "reduction", name)) <= 1


def small_kernels() -> Iterator[tuple[str, str, Kernel]]:
    """The kernels with few elements: name, text and kernel."""
    for golden, fusion, _ in reductions():
        kernel = emit(fusion)
        if sum(prod(shape_of(value)) for value in fusion.parameters) <= MOST_ELEMENTS:
            yield name_of(golden), golden["fused_stablehlo"], kernel


def problems(name: str, text: str, kernel: Kernel) -> list[str]:
    """The stages of a kernel that compute something else than XLA:CPU, or than the stage before."""
    arrays, roots = arrays_of(kernel), kernel.fusion.roots
    outputs = [(shape_of(root), np.dtype(DTYPES[element_type_of(root)])) for root in roots]
    slices = range(len(arrays) + len(outputs))
    module = initial_module(kernel.fusion, kernel.choice)
    known = run_kernel(module, kernel.launch, arrays, outputs)
    expected = reference(text, arrays)
    collected = [] if all(map(is_right, expected, known, [name] * len(known))) else [f"{name}: not what XLA computes"]
    before = print_kernel_module(module)

    def check(pass_name: str, module: builtin.ModuleOp) -> None:
        nonlocal before
        now = print_kernel_module(module)
        if now == before:
            return
        before = now
        results = run_kernel(module, kernel.launch, arrays, outputs, stage=pass_name, slices=slices)
        most = OF_LARGEST if pass_name in APPROXIMATING else 0
        for want, got in zip(known, results, strict=True):
            if not is_equal(want, got) and (want.dtype.kind in "biu" or relative(want, got) > most):
                collected.append(f"{name} after {pass_name}: other values")
        known[:] = results

    kernel.module(check)
    return collected


def test_stages_compute_what_xla_computes() -> None:
    """Every stage of a reduction gives XLA:CPU's results, without a race or an access outside of memory."""
    wrong: list[str] = []
    seen = 0
    for name, text, kernel in small_kernels():
        seen += 1
        wrong += problems(name, text, kernel)
    assert wrong == []
    assert seen > 3


def test_the_host_computes_what_xla_computes() -> None:
    """Machine code of the host gives XLA:CPU's results, also where warps are done before others."""
    wrong = []
    for golden, fusion, _ in islice(reductions(), None, None, STEP):
        kernel, name = emit(fusion), name_of(golden)
        arrays = arrays_of(kernel)
        expected = reference(golden["fused_stablehlo"], arrays)
        actual = kernel.run(*arrays, on="host")
        wrong += [name for want, got in zip(expected, actual, strict=True) if not is_right(want, got, name)]
    assert wrong == []


@pytest.mark.skipif(find_libdevice() is None, reason="libdevice is not installed (nvidia-cuda-nvcc-cu12)")
def test_ptx_is_xlas(tmp_path: Path, record_property: Callable[[str, object], None]) -> None:
    """PTX is right and without races; barriers, shared memory and widths are XLA's in 98 %; nothing is spilled."""
    dynamic = json.loads(DYNAMIC.read_text()) if DYNAMIC.exists() else {}
    wrong, other, ratios, seen = [], {}, [], 0
    for golden, fusion, _ in reductions():
        kernel, name = emit(fusion), name_of(golden)
        seen += 1
        facts = judge("facts").ptx_facts(kernel.ptx, kernel.name)
        machine = (judge("facts").machine_facts(kernel.ptx, kernel.name, str(tmp_path)) or {}).get(kernel.name)
        if machine is not None and machine["spill_stores"]:
            wrong.append(f"{name}: spills")
        theirs = golden["ptx"]
        narrow = [
            kind
            for kind in ("ld.global", "st.global")
            if widest(facts["memory"], kind) < widest(theirs["memory"], kind)
        ]
        if narrow or any(facts[key] != theirs[key] for key in ("barriers", "shared_bytes", "shuffles")):
            other[name] = (facts, theirs)
        if np.prod(kernel.launch.blocks) * np.prod(kernel.launch.threads) * facts["instructions"] > MOST_WORK:
            continue
        arrays = arrays_of(kernel)
        actual, instructions = ran(kernel, arrays)
        expected = reference(golden["fused_stablehlo"], arrays)
        wrong += [name for want, got in zip(expected, actual, strict=True) if not is_right(want, got, name)]
        of_xla = dynamic.get(f"{golden['case']}__{golden['fusion']}", {}).get("instructions")
        ratios += [instructions / of_xla] if of_xla else []
    record_property("instructions", (median(ratios), max(ratios)) if ratios else None)
    assert wrong == []
    assert len(other) <= (1 - REQUIRED) * seen, other
    assert not ratios or median(ratios) <= MOST_OF_XLA
