"""Functions of CHLO in kernels: one kernel with all of them, against numpy's in f64."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("jaxlib", reason="fusions are read through the extra 'stablehlo'")
pytest.importorskip("xdsl", reason="kernels need the extra 'codegen'")
pytest.importorskip("llvmlite", reason="machine code needs the extra 'codegen'")

import ml_dtypes
import numpy as np

from shardy_py.kernels import emit
from shardy_py.kernels.kernel import Kernel
from tests.unit.kernels.fusions import fusion_of

FUNCTIONS: dict[str, Any] = {
    "acos": np.arccos,
    "acosh": np.arccosh,
    "asin": np.arcsin,
    "asinh": np.arcsinh,
    "atan": np.arctan,
    "atanh": np.arctanh,
    "cosh": np.cosh,
    "sinh": np.sinh,
    "square": np.square,
    "tan": np.tan,
}
PREDICATES: dict[str, Any] = {"is_inf": np.isinf, "is_neg_inf": np.isneginf, "is_pos_inf": np.isposinf}
SPECIAL = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e-3, 0.5, 2.0]


def kernel_of(names: dict[str, Any], type_: str, result: str) -> Kernel:
    """One kernel with functions of the same 100 elements."""
    source, target = f"tensor<100x{type_}>", f"tensor<100x{result}>"
    lines = [f"  %{name} = chlo.{name} %x : {source} -> {target}" for name in names]
    values, types = ", ".join(f"%{name}" for name in names), ", ".join([target] * len(names))
    body = "\n".join(lines)
    return emit(fusion_of(f"func.func @main(%x: {source}) -> ({types}) {{\n{body}\n  return {values} : {types}\n}}"))


def numbers(dtype: Any) -> Any:
    """Numbers of both signs, and special ones."""
    return np.concatenate([np.linspace(-3, 3, 90), SPECIAL]).astype(dtype)


@pytest.mark.parametrize(("type_", "dtype"), [("f32", np.float32), ("f64", np.float64), ("bf16", ml_dtypes.bfloat16)])
def test_functions(type_: str, dtype: Any) -> None:
    """Each function is as near to the exact one as two units of the last place, also where it has no value."""
    x = numbers(dtype)
    precision = float(ml_dtypes.finfo(dtype).eps)
    for name, actual in zip(FUNCTIONS, kernel_of(FUNCTIONS, type_, type_).run(x, on="host"), strict=True):
        with np.errstate(all="ignore"):
            want = FUNCTIONS[name](x.astype(np.float64))
        np.testing.assert_allclose(actual.astype(np.float64), want, rtol=2 * precision, atol=0, err_msg=name)


def test_infinities() -> None:
    """Each infinity is told from numbers and NaNs, by its sign where that counts."""
    x = numbers(np.float32)
    for name, actual in zip(PREDICATES, kernel_of(PREDICATES, "f32", "i1").run(x), strict=True):
        np.testing.assert_array_equal(actual, PREDICATES[name](x), err_msg=name)


def test_squares_of_complex_numbers() -> None:
    """A square of complex numbers is their product, too."""
    numbers = np.arange(-50, 50, dtype=np.float32)
    pairs = (numbers + 2j * numbers[::-1]).astype(np.complex64)
    actual = kernel_of({"square": np.square}, "complex<f32>", "complex<f32>").run(pairs)[0]
    np.testing.assert_array_equal(actual, pairs * pairs)
