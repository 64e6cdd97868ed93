"""Loop kernels, run thread by thread before any pass, compute what XLA:CPU computes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import prod
from typing import Any

import numpy as np
import pytest

pytest.importorskip("xdsl", reason="kernels need the extra 'codegen'")

from xdsl.dialects import builtin, func

from shardy_py.kernels.device import H100
from shardy_py.kernels.elemental.functions import FunctionEmitter
from shardy_py.kernels.entry.entries import loop_entry
from shardy_py.kernels.fusion.fusion import Fusion, element_type_of, shape_of
from shardy_py.kernels.launch.launches import launch_of
from shardy_py.kernels.partition import partition
from shardy_py.kernels.run.kernel import run_kernel
from tests.conformance.sample import sample
from tests.conformance.test_kernels import FILE, kernels, name_of
from tests.conformance.xla_cpu import is_equal, random_array, relative, run_on_xla, ulps

pytestmark = [
    pytest.mark.conformance,
    pytest.mark.skipif(not FILE.exists(), reason="the reference's kernels are not beside the project"),
]

# Kernels of more elements would take more than some seconds each; their names are a property of the test's report.
MOST_ELEMENTS = 1 << 24

# Functions that XLA:CPU approximates by polynomials or rational functions in f32, where ours are rounded from f64: how
# many units of the last place it may be off. What is not here may differ by 2.
APPROXIMATE = {"math.erf": 4, "math.expm1": 6, "math.tanh": 4}
FUNCTIONS = frozenset(
    f"math.{name}"
    for name in (
        *("acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "cos", "cosh", "erf", "exp", "exp2"),
        *("expm1", "log", "log10", "log1p", "log2", "powf", "rsqrt", "sin", "sinh", "tan", "tanh"),
    )
)
COMPLEX = frozenset(
    f"complex.{name}"
    for name in ("abs", "angle", "atan2", "cos", "div", "exp", "expm1", "log", "log1p", "pow", "rsqrt", "sign")
) | frozenset(f"complex.{name}" for name in ("sin", "sqrt", "tan", "tanh"))
ARITHMETIC = ("arith.addf", "arith.divf", "arith.mulf", "arith.negf", "arith.subf")

# What follows a function can cancel, which leaves the function's error in a small result. It is then measured against
# the largest element of the result; the sum of a function's errors over a chain of ops was at most 1.5 of its units.
OF_LARGEST = 4.0
# XLA:CPU adds in the order that vectors of the processor suggest, we one element after the other.
OF_LARGEST_SUM = 16.0


def loop_module(fusion: Fusion, choice: Any) -> builtin.ModuleOp:
    """The module of a loop kernel before any pass."""
    functions = FunctionEmitter(fusion, partition(fusion, choice))
    return builtin.ModuleOp([loop_entry(functions, launch_of(fusion, choice, H100)), *functions.functions()])


def ops_of(module: builtin.ModuleOp) -> set[str]:
    """The names of the ops in a module."""
    return {op.name for op in module.walk() if not isinstance(op, func.FuncOp)}


def sums_floats(fusion: Fusion) -> bool:
    """Whether a fusion combines floats along dimensions."""
    return any(
        (fusion.facts[op.id].is_reduction or fusion.facts[op.id].is_contraction)
        and not element_type_of(op.results[0]).startswith("i")
        for op in fusion.ops
    )


def difference(fusion: Fusion, ops: set[str], want: Any, got: Any) -> str:
    """How a result differs by more than it may, or nothing."""
    functions = ops & (FUNCTIONS | COMPLEX)
    if is_equal(want, got):
        return ""
    if sums_floats(fusion) and want.dtype.kind in "fcV":
        actual = relative(want, got)
        return "" if actual <= OF_LARGEST_SUM else f"{actual} units of the largest element, a sum"
    if not functions or want.dtype.kind in "biu":
        return f"not equal, {ulps(want, got)} units of the last place"
    is_alone = len(functions) == 1 and not ops & {*ARITHMETIC, *COMPLEX}
    if is_alone:
        (name,) = functions
        actual, most = ulps(want, got), APPROXIMATE.get(name, 2)
        return "" if actual <= most else f"{actual} units of the last place, {most} allowed for {name}"
    actual = relative(want, got)
    return "" if actual <= OF_LARGEST else f"{actual} units of the largest element"


def loop_kernels() -> Iterator[tuple[str, str, Fusion, Any]]:
    """Every loop kernel: its name, text, fusion and choice."""
    for kernel, fusion, choice in kernels():
        if kernel["emitter"] == "loop":
            yield name_of(kernel), kernel["fused_stablehlo"], fusion, choice


def some_loop_kernels() -> list[tuple[str, str, Fusion, Any]]:
    """Loop kernels to run: every third."""
    return sample(loop_kernels(), 3)


def test_loop_kernels_compute_what_xla_computes(record_property: Callable[[str, object], None]) -> None:
    """Every loop kernel gives XLA:CPU's results: the same bits where no function of the real line is in it."""
    wrong: dict[str, str] = {}
    exact, left_out = 0, []
    for name, text, fusion, choice in some_loop_kernels():
        if max(prod(shape_of(root)) for root in fusion.roots) > MOST_ELEMENTS:
            left_out.append(name)
            continue
        rng = np.random.default_rng(len(text))
        arrays = [random_array(shape_of(value), element_type_of(value), rng) for value in fusion.parameters]
        expected = run_on_xla(text, arrays)
        module = loop_module(fusion, choice)
        outputs = [(array.shape, array.dtype) for array in expected]
        actual = run_kernel(module, launch_of(fusion, choice, H100), arrays, outputs)
        ops = ops_of(module)
        for want, got in zip(expected, actual, strict=True):
            exact += is_equal(want, got)
            if problem := difference(fusion, ops, want, got):
                wrong[name] = problem
    record_property("left out by size", left_out)
    assert wrong == {}
    assert exact > 20
