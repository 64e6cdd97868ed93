"""Kernels whose threads share memory compute the same at every stage."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

pytest.importorskip("xdsl", reason="kernels need the extra 'codegen'")

import ml_dtypes

from shardy_py.kernels.dialect.text import parse_kernel_module, print_kernel_module
from shardy_py.kernels.launch.grid import Launch
from shardy_py.kernels.run.kernel import run_kernel
from tests.unit.kernels import shared_kernels as kernels
from tests.unit.kernels.module_texts import run_loop_pipeline

BF16 = np.dtype(ml_dtypes.bfloat16)


# Stages at which shared memory and atomic updates take another form, and the last one.
STAGES = (
    *("lower-to-scf", "inline", "lower-loops-to-scf", "flatten-tensors", "vectorize-loads-stores"),
    *("lower-tensors", "complex-to-standard", "scf-to-cf"),
)


def check(text: str, launch: Launch, inputs: Sequence[Any], want: Any, slices: Sequence[int]) -> None:
    """Check what a kernel computes at its stages, and after its last text is read back."""

    def compare(name: str, module: Any) -> None:
        (actual,) = run_kernel(module, launch, inputs, [(want.shape, want.dtype)], stage=name, slices=slices)
        np.testing.assert_array_equal(actual, want, err_msg=name)

    def keep(name: str, current: Any) -> None:
        if name in STAGES:
            current.verify()
            compare(name, current)

    module = parse_kernel_module(text)
    compare("initial", module)
    run_loop_pipeline(module, keep)
    compare("text of the last stage", parse_kernel_module(print_kernel_module(module)))


def test_a_transpose() -> None:
    """A tile is written, and read by other threads after the barrier, at every stage."""
    x = np.arange(3500, dtype=np.float32).reshape(50, 70)
    check(kernels.TRANSPOSE, kernels.TRANSPOSE_LAUNCH, [x], np.ascontiguousarray(-x.T), [0, 1])


@pytest.mark.parametrize("type_", ["f32", "bf16", "f64", "i64", "i32", "complex<f32>"])
def test_sums_of_rows(type_: str) -> None:
    """Lanes exchange values of every size; sums of small integers are exact in every type."""
    names = {"f32": "f4", "f64": "f8", "i64": "i8", "i32": "i4", "complex<f32>": "c8"}
    dtype = BF16 if type_ == "bf16" else np.dtype(names[type_])
    x = (np.arange(6 * 256).reshape(6, 256) % 2).astype(dtype)
    check(kernels.rows(type_, dtype.itemsize), kernels.ROWS_LAUNCH, [x], x.sum(axis=1, dtype=dtype), [0, 1])


CASES = {
    "f32-add": ("f32", "arith.addf", np.float32),
    "f32-max": ("f32", "arith.maximumf", np.float32),
    "f32-min": ("f32", "arith.minimumf", np.float32),
    "f32-mul": ("f32", "arith.mulf", np.float32),
    "bf16-add": ("bf16", "arith.addf", BF16),
    "f64-add": ("f64", "arith.addf", np.float64),
    "i32-add": ("i32", "arith.addi", np.int32),
    "i32-umax": ("i32", "arith.maxui", np.int32),
    "i8-or": ("i8", "arith.ori", np.int8),
    "i64-mul": ("i64", "arith.muli", np.int64),
    "complex-add": ("complex<f32>", "complex.add", np.complex64),
}


def updated(name: str, x: Any, at: Any, u: Any) -> Any:
    """What updates make of rows, one after the other."""
    combine = {"add": np.add, "max": np.maximum, "min": np.minimum, "mul": np.multiply, "or": np.bitwise_or}
    actual = x.copy()
    for row, values in zip(at, u, strict=True):
        if row >= len(x):
            continue
        if name == "umax":
            actual[row] = np.maximum(actual[row].view(np.uint32), values.view(np.uint32)).view(np.int32)
        else:
            actual[row] = combine[name](actual[row], values)
    return actual


@pytest.mark.parametrize("case", CASES)
def test_atomic_updates(case: str) -> None:
    """Updates are made one after the other, by an operation of the memory or by trial, at every stage."""
    type_, op, dtype = CASES[case]
    random = np.random.default_rng(1)
    x, u = (random.integers(-3, 4, shape).astype(dtype) for shape in ((8, 2), (200, 2)))
    if case.endswith("mul"):
        u = np.where(u == 0, 1, np.sign(u)).astype(dtype)
    if case in ("f32-max", "f32-min"):
        x[0, 0] = u[3, 1] = np.nan
    at = random.integers(0, 10, 200).astype(np.int32)
    want = updated(case.split("-")[1], x, at, u)
    text = kernels.updates(type_, np.dtype(dtype).itemsize, op)
    check(text, kernels.UPDATES_LAUNCH, [x, at, u], want, [0, 1, 2, 0])


def test_overwriting() -> None:
    """An element that several threads overwrite has the value of one of them: in the interpreter of the last."""
    x, u = np.zeros((8, 2), np.float32), np.arange(400, dtype=np.float32).reshape(200, 2)
    at = (np.arange(200) % 8).astype(np.int32)
    check(kernels.updates("f32", 4), kernels.UPDATES_LAUNCH, [x, at, u], u[-8:], [0, 1, 2, 0])
