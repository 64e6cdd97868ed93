"""Single ops of StableHLO compute in kernels what they compute on XLA:CPU, at special values too."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

pytest.importorskip("xdsl", reason="kernels need the extra 'codegen'")

from shardy_py.kernels.device import H100
from shardy_py.kernels.fusion.choose import choose
from shardy_py.kernels.launch.launches import launch_of
from shardy_py.kernels.run.kernel import run_kernel
from tests.conformance.sample import IS_WHOLE, sample
from tests.conformance.test_kernel_runs import loop_module
from tests.conformance.xla_cpu import DTYPES, is_equal, run_on_xla, ulps
from tests.unit.kernels.fusions import fusion_of

pytestmark = pytest.mark.conformance

STEP = 3
"""Of the exact ops with their types, one of so many is in the sample."""

FLOATS = ("f32", "bf16", "f16", "f64")
SIGNED = ("i8", "i16", "i32", "i64")
INTEGERS = (*SIGNED, "ui8", "ui16", "ui32", "ui64")
EXACT_FLOATS = ("abs", "negate", "sign", "floor", "ceil", "round_nearest_afz", "round_nearest_even")
BINARY = {
    "f": ("add", "subtract", "multiply", "divide", "maximum", "minimum", "remainder"),
    "i": (
        *("add", "subtract", "multiply", "divide", "remainder", "maximum", "minimum", "and", "or", "xor"),
        *("shift_left", "shift_right_arithmetic", "shift_right_logical"),
    ),
    "b": ("add", "multiply", "maximum", "minimum", "and", "or", "xor"),
}
# Units of the last place that XLA:CPU's functions may be off; ours are rounded from f64.
FUNCTIONS = {
    "cbrt": 2,
    "cosine": 2,
    "exponential": 2,
    "exponential_minus_one": 6,
    "log": 2,
    "log_plus_one": 2,
    "rsqrt": 2,
    "sine": 2,
    "sqrt": 0,
    "tan": 2,
    "tanh": 6,
}


def special(element_type: str) -> Any:
    """Limits, infinities, NaN, both zeros, halves; no number below the normal ones, which XLA:CPU takes as zero."""
    dtype = np.dtype(DTYPES[element_type])
    if dtype.kind == "b":
        return np.array([False, True])
    if dtype.kind in "iu":
        most, least = np.iinfo(dtype).max, np.iinfo(dtype).min
        negative = [-1, -2, -3, -7] if dtype.kind == "i" else []
        return np.array([0, 1, 2, 3, 5, 7, 8, 31, most, most - 1, least, least + 1, most // 2, *negative], dtype)
    numbers = [0.0, -0.0, 1, -1, 0.5, -0.5, 1.5, 2.5, -2.5, 3.3, -7.7, 0.001, -0.001, 0.49999997, 100.5, 127.5, 128]
    numbers += [255.5, 256, -128.5, 32767.5, 65504.0, 2147483647.0, 4294967295.0, 9.3e18, -9.3e18, 1.9e19]
    with np.errstate(over="ignore"):
        return np.array([*numbers, np.inf, -np.inf, np.nan]).astype(dtype)


def results(text: str, arrays: list[Any]) -> tuple[Any, Any]:
    """What XLA:CPU and our kernel compute."""
    (want,) = run_on_xla(text, arrays)
    fusion = fusion_of(text)
    choice = choose(fusion, H100)
    launch = launch_of(fusion, choice, H100)
    (got,) = run_kernel(loop_module(fusion, choice), launch, arrays, [(want.shape, want.dtype)])
    return want, got


def module(op: str, operands: list[str], result: str, count: int) -> str:
    """A module with one op."""
    types = [f"tensor<{count}x{type_}>" for type_ in operands]
    arguments = ", ".join(f"%a{number}: {type_}" for number, type_ in enumerate(types))
    names = ", ".join(f"%a{number}" for number in range(len(types)))
    head, _, tail = op.partition("|")
    return f"""func.func @main({arguments}) -> tensor<{count}x{result}> {{
  %0 = stablehlo.{head} {names}{tail} : ({", ".join(types)}) -> tensor<{count}x{result}>
  return %0 : tensor<{count}x{result}>
}}"""


def pairs(element_type: str) -> list[Any]:
    """Every pair of special values."""
    left, right = np.meshgrid(special(element_type), special(element_type))
    return [np.ascontiguousarray(left).reshape(-1), np.ascontiguousarray(right).reshape(-1)]


def exact_cases() -> Iterator[tuple[str, str, list[Any]]]:
    """Ops whose results are equal bit by bit: a name, the module, the arrays."""
    for type_ in (*FLOATS, *INTEGERS, "i1"):
        kind = "f" if type_ in FLOATS else "b" if type_ == "i1" else "i"
        unary = EXACT_FLOATS if kind == "f" else ("not", "popcnt", "count_leading_zeros") if kind == "i" else ("not",)
        unary = (*unary, "abs", "negate", "sign") if type_ in SIGNED else unary
        values = special(type_)
        for op in unary:
            yield f"{op} {type_}", module(op, [type_], type_, len(values)), [values]
        both = pairs(type_)
        for op in BINARY[kind]:
            yield f"{op} {type_}", module(op, [type_] * 2, type_, len(both[0])), both
        for target in (*FLOATS, *INTEGERS, "i1"):
            if target != type_:
                yield f"convert {type_} {target}", module("convert", [type_], target, len(values)), [values]


def test_exact_ops() -> None:
    """Arithmetic, logic and conversions give the same bits as XLA:CPU, in every type; a sample covers all types."""
    wrong, seen = [], 0
    for name, text, arrays in sample(exact_cases(), STEP):
        with np.errstate(all="ignore"):
            want, got = results(text, arrays)
        seen += 1
        if not is_equal(want, got):
            wrong.append(name)
    assert wrong == []
    assert seen > (200 if IS_WHOLE else 200 // STEP)


@pytest.mark.parametrize("type_", ["f32", "bf16", "f16"])
def test_functions(type_: str) -> None:
    """Functions of the real line are as far from XLA:CPU's as its own approximations are from the exact ones."""
    wrong = {}
    dtype = DTYPES[type_]
    values = np.concatenate([special(type_), np.random.default_rng(0).normal(0, 3, 50_000).astype(dtype)])
    for op, most in FUNCTIONS.items():
        with np.errstate(all="ignore"):
            want, got = results(module(op, [type_], type_, len(values)), [values])
        if (actual := ulps(want, got)) > most:
            wrong[op] = actual
    assert wrong == {}
