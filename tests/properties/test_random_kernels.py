"""Kernels of random programs compute what XLA:CPU computes, on the host and in the interpreter, which sees races."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import pytest

pytest.importorskip("jaxlib", reason="programs are read through the extra 'stablehlo'")
pytest.importorskip("xdsl", reason="kernels need the extra 'codegen'")

import numpy as np

from shardy_py.errors import UnsupportedError
from shardy_py.kernels import emit
from shardy_py.kernels.lower import host
from tests.properties.random_kernels import Program, random_program
from tests.unit.kernels.fusions import fusion_of

MANY = int(os.environ.get("SHARDY_FUZZ_PROGRAMS", "400"))
FIRST = int(os.environ.get("SHARDY_FUZZ_SEED", "0"))
# What a kernel may refuse.
REFUSALS: set[str] = set()
NEGATE_FOUR_BITS = """
func.func @main(%x: tensor<5xi4>) -> tensor<5xi4> {
  %0 = stablehlo.negate %x : tensor<5xi4>
  return %0 : tensor<5xi4>
}"""


def reference(text: str, arrays: tuple[Any, ...]) -> list[Any]:
    """What XLA:CPU gives; runs in a process of its own, as XLA may end it."""
    from tests.conformance.xla_cpu import run_on_xla

    # The rewriter makes several reductions of one, each of which counts the initial value.
    return run_on_xla(text, arrays, xla_disable_hlo_passes="algsimp,tree_reduction_rewriter")


def is_same(want: Any, got: Any) -> bool:
    """Whether all elements are equal; a NaN is as good as another, and the sign of a zero may differ."""
    wide = [array if array.dtype.kind in "biu" else array.astype(np.float64) for array in (want, got)]
    return (
        want.dtype == got.dtype
        and want.shape == got.shape
        and np.array_equal(*wide, equal_nan=wide[0].dtype.kind == "f")
    )


def difference(program: Program, want: list[Any], device: str = "h100") -> str:
    """What is wrong with the kernel of a program; nothing, or the code of its refusal behind a ``!``."""
    try:
        kernel = emit(fusion_of(program.text), device=device)
        ways = {"host": kernel.run(*program.arrays, on="host"), "interpreter": kernel.run(*program.arrays)}
        ways["initial"] = kernel.run(*program.arrays, stage="initial")
        # The second run is that of code that LLVM compiles with all passes, as for large arrays.
        ways["optimized"] = kernel.run(*program.arrays, on="host")
    except UnsupportedError as error:
        return f"!{error.diagnostics[0].code}"
    wrong = [
        way
        for way, results in ways.items()
        if not all(is_same(expected, np.asarray(result)) for expected, result in zip(want, results, strict=True))
    ]
    return f"the {kernel.choice.name} kernel is wrong on {', '.join(wrong)}" if wrong else ""


def runs_four_bits() -> bool:
    """Whether kernels of this version run elements of four bits."""
    try:
        kernel = emit(fusion_of(NEGATE_FOUR_BITS))
        x, negated = np.arange(5).astype("int4"), (-np.arange(5)).astype("int4")
        return all(is_same(negated, kernel.run(x, on=on)[0]) for on in ("host", "interpreter"))  # type: ignore[arg-type]
    except Exception:
        return False


@pytest.fixture(scope="module")
def worker() -> Iterator[ProcessPoolExecutor]:
    """A process that runs XLA."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        yield pool


@pytest.fixture(autouse=True)
def second_run_is_optimized(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the first run of a kernel on the host be the only one of quickly compiled code."""
    monkeypatch.setattr(host, "QUICK_RUNS", 2)


def check(seeds: range, worker: ProcessPoolExecutor, device: str = "h100") -> None:
    """Check that the kernels of seeds give what XLA:CPU gives, and that few of them are refused."""
    collected: Counter[str] = Counter()
    wrong = {}
    four_bits = runs_four_bits()
    programs = [random_program(seed, four_bits=four_bits) for seed in seeds]
    # XLA goes ahead of the kernels, so that neither process waits for the other at every program.
    expected = [worker.submit(reference, program.text, program.arrays) for program in programs]
    for seed, program, results in zip(seeds, programs, expected, strict=True):
        text = difference(program, results.result(), device)
        collected[text] += 1
        if text and text[1:] not in REFUSALS:
            wrong[seed] = f"{text}:\n{program.text}"
    assert not wrong, "\n".join(f"seed {seed}: {text}" for seed, text in wrong.items())
    assert collected[""] > 0.8 * len(seeds), collected


def test_a_seed_gives_the_same_program_again() -> None:
    """Programs are equal whenever they are made, so that a difference can be found again; others differ."""
    texts = [[random_program(seed).text for seed in range(8)] for _ in range(2)]
    assert texts[0] == texts[1]
    assert len(set(texts[0])) == 8


@pytest.mark.fuzz
@pytest.mark.parametrize("part", range(8))
def test_kernels_of_random_programs(part: int, worker: ProcessPoolExecutor) -> None:
    """No program has a kernel that is wrong, races or fails; SHARDY_FUZZ_PROGRAMS and SHARDY_FUZZ_SEED set which."""
    count = -(-MANY // 8)
    check(range(FIRST + part * count, FIRST + (part + 1) * count), worker)


@pytest.mark.fuzz
@pytest.mark.parametrize("part", range(8))
def test_kernels_without_warps_of_random_programs(part: int, worker: ProcessPoolExecutor) -> None:
    """Nor has one whose threads reduce by themselves, as on the device ``host``; an eighth as many as above."""
    count = -(-MANY // 64)
    check(range(FIRST + part * count, FIRST + (part + 1) * count), worker, "host")
