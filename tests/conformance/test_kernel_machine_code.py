"""Loop kernels as machine code of the host compute what XLA:CPU and the interpreter compute."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import prod
from statistics import median
from typing import Any

import numpy as np
import pytest

pytest.importorskip("llvmlite", reason="machine code needs the extra 'codegen'")

from shardy_py.errors import ShardyError
from shardy_py.kernels.fusion.fusion import Fusion, element_type_of, shape_of
from shardy_py.kernels.kernel import Kernel, emit
from shardy_py.kernels.requirements import find_libdevice
from shardy_py.kernels.run.memory import aligned
from tests.conformance.test_kernel_runs import difference, loop_kernels, loop_module, ops_of, some_loop_kernels
from tests.conformance.test_kernels import FILE
from tests.conformance.xla_cpu import DTYPES, compiled_on_xla, is_equal, random_array, run_on_xla

pytestmark = [
    pytest.mark.conformance,
    pytest.mark.skipif(not FILE.exists(), reason="the reference's kernels are not beside the project"),
]

MOST_FOR_INTERPRETER, MOST_ELEMENTS = 1 << 14, 1 << 21
GELU = "gelu_tanh_bf16/loop_multiply_fusion"


def arrays_of(fusion: Fusion, seed: int) -> list[Any]:
    """Random arrays for the parameters of a fusion."""
    rng = np.random.default_rng(seed)
    return [random_array(shape_of(value), element_type_of(value), rng) for value in fusion.parameters]


def elements_of(fusion: Fusion) -> int:
    """The elements of the largest result."""
    return max(prod(shape_of(root)) for root in fusion.roots)


def test_the_host_computes_what_xla_computes(record_property: Callable[[str, object], None]) -> None:
    """Machine code of every loop kernel gives XLA:CPU's results: the same bits where no function is in it.

    Without functions of the C library in it, it also gives the bits of the interpreter at the last stage.
    """
    wrong: dict[str, str] = {}
    left_out, compared = [], 0
    for name, text, fusion, choice in some_loop_kernels():
        if elements_of(fusion) > MOST_ELEMENTS:
            left_out.append(name)
            continue
        kernel, arrays = emit(fusion), arrays_of(fusion, len(text))
        actual = kernel.run(*arrays, on="host")
        ops = ops_of(loop_module(fusion, choice))
        for want, got in zip(run_on_xla(text, arrays), actual, strict=True):
            if problem := difference(fusion, ops, want, got):
                wrong[name] = problem
        if elements_of(fusion) > MOST_FOR_INTERPRETER or calls_functions(kernel):
            continue
        compared += 1
        same = zip(kernel.run(*arrays), actual, strict=True)
        if not all(is_equal(want, got) for want, got in same):
            wrong[name] = "other bits than the interpreter"
    record_property("left out by size", left_out)
    assert wrong == {}
    assert compared > 10


def calls_functions(kernel: Kernel) -> bool:
    """Whether a kernel has ops that the interpreter and the processor round differently."""
    return "math." in kernel.text or "arith.remf" in kernel.text


@contextmanager
def one_core() -> Iterator[None]:
    """Keep this process on one core."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def test_gelu_computes_what_xla_computes(record_property: Callable[[str, object], None]) -> None:
    """GELU over 12582912 elements gives XLA:CPU's results; the times of both, on one core in turns, are recorded."""
    actual = [(text, fusion, choice) for name, text, fusion, choice in loop_kernels() if name == GELU]
    if not actual:
        pytest.skip(f"{GELU} is not in the file")
    ((text, fusion, choice),) = actual
    (x,) = arrays_of(fusion, 0)
    (root,) = fusion.roots
    buffers = [aligned(x), aligned(np.empty(shape_of(root), DTYPES[element_type_of(root)]))]
    ours: list[float] = []
    theirs: list[float] = []
    with one_core():
        host, xla = emit(fusion).host, compiled_on_xla(text, [x])
        for _ in range(7):
            for times, run in ((ours, lambda: host.run_into(buffers)), (theirs, xla)):
                start = time.perf_counter()
                run()
                times.append(time.perf_counter() - start)
    record_property("seconds", (min(ours), min(theirs)))
    (want,) = run_on_xla(text, [x])
    assert difference(fusion, ops_of(loop_module(fusion, choice)), want, buffers[1]) == ""


def test_kernels_are_lowered(record_property: Callable[[str, object], None]) -> None:
    """Every loop kernel becomes text for LLVM, or the error names libdevice; the times are recorded."""
    seconds, refused = [], {}
    for name, _, fusion, _ in loop_kernels():
        start = time.process_time()
        try:
            text = emit(fusion).llvm
        except ShardyError as error:
            refused[name] = str(error)
            continue
        seconds.append(time.process_time() - start)
        assert "define ptx_kernel" in text, name
    record_property("seconds", (median(seconds), max(seconds)))
    assert [name for name, error in refused.items() if "libdevice" not in error] == []
    assert not refused or find_libdevice() is None
