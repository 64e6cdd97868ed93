"""Loop kernels as machine code of the host compute what XLA:CPU and the interpreter compute, and as fast."""

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

from shardy_py.emitters.fusion.fusion import Fusion, element_type_of, shape_of
from shardy_py.emitters.kernel import Kernel, emit
from shardy_py.emitters.run.memory import aligned
from tests.conformance.test_kernel_runs import difference, loop_kernels, loop_module, ops_of
from tests.conformance.test_kernels import FILE
from tests.conformance.xla_cpu import DTYPES, compiled_on_xla, is_equal, random_array, run_on_xla

pytestmark = [
    pytest.mark.conformance,
    pytest.mark.skipif(not FILE.exists(), reason="the reference's kernels are not beside the project"),
]

MOST_FOR_INTERPRETER, MOST_ELEMENTS = 1 << 14, 1 << 21
GELU = "gelu_tanh_bf16/loop_multiply_fusion"
MOST_OF_XLA_TIME = 1.5
MOST_SECONDS, MOST_SECONDS_OF_ONE = 0.3, 3.0


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
    for name, text, fusion, choice in loop_kernels():
        if elements_of(fusion) > MOST_ELEMENTS:
            left_out.append(name)
            continue
        kernel, arrays = emit(fusion), arrays_of(fusion, len(text))
        found = kernel.run(*arrays, on="host")
        ops = ops_of(loop_module(fusion, choice))
        for want, got in zip(run_on_xla(text, arrays), found, strict=True):
            if problem := difference(fusion, ops, want, got):
                wrong[name] = problem
        if elements_of(fusion) > MOST_FOR_INTERPRETER or calls_functions(kernel):
            continue
        compared += 1
        same = zip(kernel.run(*arrays), found, strict=True)
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


def test_gelu_is_as_fast_as_xla(record_property: Callable[[str, object], None]) -> None:
    """GELU over 12582912 elements takes at most one and a half times XLA:CPU's time, on one core and in turns."""
    found = [(text, fusion) for name, text, fusion, _ in loop_kernels() if name == GELU]
    if not found:
        pytest.skip(f"{GELU} is not in the file")
    ((text, fusion),) = found
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
    assert min(ours) <= MOST_OF_XLA_TIME * min(theirs)


def test_kernels_are_lowered_quickly(record_property: Callable[[str, object], None]) -> None:
    """From a fusion to text for LLVM it takes a third of a second in the median, and three seconds at most."""
    seconds = []
    for _, _, fusion, _ in loop_kernels():
        start = time.process_time()
        assert "define ptx_kernel" in emit(fusion).llvm
        seconds.append(time.process_time() - start)
    record_property("seconds", (median(seconds), max(seconds)))
    assert median(seconds) <= MOST_SECONDS
    assert max(seconds) <= MOST_SECONDS_OF_ONE
