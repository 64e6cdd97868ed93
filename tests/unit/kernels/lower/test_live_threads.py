"""Threads that compute what someone uses, on the host."""

from __future__ import annotations

import pytest

pytest.importorskip("xdsl", reason="kernels need the extra 'codegen'")
pytest.importorskip("llvmlite", reason="machine code needs the extra 'codegen'")

import numpy as np

from shardy_py.kernels.dialect.text import parse_kernel_module
from shardy_py.kernels.entry.arguments import ENTRY
from shardy_py.kernels.launch.grid import Launch
from shardy_py.kernels.lower.host import compile_host
from shardy_py.kernels.lower.live_threads import live_threads, strips_of
from shardy_py.kernels.lower.phases import split_phases
from shardy_py.kernels.passes.base import functions
from tests.unit.kernels import shared_kernels as kernels
from tests.unit.kernels.module_texts import run_loop_pipeline

ALL = 128


def live_of(text: str, launch: Launch = kernels.ROWS_LAUNCH) -> list[int]:
    """How many threads run each phase of a kernel."""
    module = parse_kernel_module(text)
    run_loop_pipeline(module)
    (entry,) = (function for function in functions(module) if ENTRY in function.attributes)
    return [threads.bit_count() for threads in live_threads(entry, split_phases(entry), launch, 32).of_phases]


def test_halves_of_lanes_add() -> None:
    """Sums of warps are in their first lanes, the sum of a row in the first lane of the first warp."""
    live = live_of(kernels.rows("f32", 4))
    warps = live[live.index(64) :]
    assert warps[:4] == [64, 32, 16, 8]
    assert live[-6:] == [32, 16, 8, 4, 2, 1]


def test_a_sum_that_all_lanes_use() -> None:
    """Where each lane writes what it has, all lanes compute it."""
    text = kernels.rows("f32", 4).replace("%whole into %o[%bl] if %is_first", "%whole into %o[%bl] if %yes")
    text = text.replace("%is_first = arith.cmpi eq, %th, %c0", "%yes = arith.cmpi sge, %th, %c0")
    assert set(live_of(text)[-5:]) == {ALL}


def test_a_function_that_branches_takes_no_numbers_of_nobody() -> None:
    """A function with blocks is called with what threads computed only."""
    branching = """func.func private @sum(%a: f32, %b: f32) -> f32 {
    %less = arith.cmpf olt, %a, %b : f32
    %s = scf.if %less -> (f32) {
      %t = arith.addf %a, %b : f32
      scf.yield %t : f32
    } else {
      %t = arith.addf %b, %a : f32
      scf.yield %t : f32
    }
    func.return %s : f32"""
    text = kernels.rows("f32", 4)
    start = text.index("func.func private @sum")
    text = text[:start] + branching + text[text.index("}", start) - 2 :].removeprefix("\n")
    assert set(live_of(text)) == {ALL}
    module = parse_kernel_module(text)
    run_loop_pipeline(module)
    x = np.arange(6 * 256, dtype=np.float32).reshape(6, 256)
    (actual,) = compile_host(module, kernels.ROWS_LAUNCH).run([x], [((6,), np.dtype(np.float32))])
    np.testing.assert_array_equal(actual, x.sum(axis=1))


def test_threads_of_several_dimensions_all_run() -> None:
    """Only threads along x are counted."""
    live = live_of(kernels.rows("f32", 4), Launch((6, 1, 1), (ALL, 2, 1)))
    assert set(live) == {ALL}


@pytest.mark.parametrize(
    ("threads", "width", "strips"),
    [
        ((1 << 128) - 1, 32, (4, 32)),
        (1, 32, (1, 1)),
        (1 | 1 << 32, 32, (2, 1)),
        (0b11 | 0b11 << 64, 32, (3, 2)),
        (0, 32, (1, 1)),
        (1 << 31, 8, (4, 8)),
    ],
)
def test_strips_hold_all_threads(threads: int, width: int, strips: tuple[int, int]) -> None:
    """Strips and places in them are counted from the first one, and there is one at least."""
    assert strips_of(threads, width) == strips
