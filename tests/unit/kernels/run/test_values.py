"""Numbers as the interpreter holds them, and ops on them."""

from __future__ import annotations

import pytest

pytest.importorskip("xdsl", reason="kernels need the extra 'codegen'")
pytest.importorskip("ml_dtypes", reason="kernels need the extra 'codegen'")

from typing import Any

import ml_dtypes
import numpy as np

from shardy_py.kernels.run.values import round_to_bfloat16
from tests.unit.kernels.run.modules import entry, run_one

NAMES = {"bf16": ml_dtypes.bfloat16, "f16": np.float16, "f32": np.float32, "f64": np.float64, "i8": np.int8}
NAMES |= {"i16": np.int16, "i32": np.int32, "i64": np.int64, "complex<f32>": np.complex64}


def elementwise(op: str, operands: list[Any], dtype: str, *, result: str = "") -> Any:
    """What ``%r = ...`` computes of elements ``%a``, ``%b`` of 32 numbers."""
    result = result or dtype
    names = "ab"[: len(operands)]
    types = "".join(f"%x{name}: tensor<32x{dtype}>," for name in names)
    body = "".join(f"  %{name} = tensor.extract %x{name}[%t] : tensor<32x{dtype}>\n" for name in names)
    body += f"  {op}\n  %w = tensor.insert %r into %o[%t] : tensor<32x{result}>"
    arrays = [np.resize(np.asarray(operand, NAMES[dtype]), 32) for operand in operands]
    module = entry(types, body, result=f"tensor<32x{result}>")
    return run_one(module, arrays, ((32,), NAMES[result]))


def test_bfloat16_is_rounded_by_integers() -> None:
    """Floats go to the nearest bf16, halves to even; NaNs stay NaNs, infinities stay."""
    bits = np.random.default_rng(0).integers(0, 1 << 32, 100_000, dtype=np.uint32)
    numbers = bits.view(np.float32)
    numbers = np.append(numbers, np.array([np.inf, -np.inf, 0.0, -0.0, 3.4e38], np.float32))
    with np.errstate(invalid="ignore"):
        want = numbers.astype(ml_dtypes.bfloat16).astype(np.float32)
    got = round_to_bfloat16(numbers)
    is_nan = np.isnan(numbers)
    assert np.array_equal(np.isnan(got), is_nan)
    np.testing.assert_array_equal(got[~is_nan].view(np.uint32), want[~is_nan].view(np.uint32))


@pytest.mark.parametrize("dtype", ["bf16", "f16"])
@pytest.mark.parametrize("name", ["addf", "subf", "mulf", "divf"])
def test_halves_are_rounded_after_each_op(dtype: str, name: str) -> None:
    """Arithmetic of 16 bits is that of f32, rounded."""
    rng = np.random.default_rng(1)
    left, right = rng.normal(0, 2, (2, 32)).astype(NAMES[dtype])
    wide = {"addf": np.add, "subf": np.subtract, "mulf": np.multiply, "divf": np.divide}[name]
    want = wide(left.astype(np.float32), right.astype(np.float32)).astype(NAMES[dtype])
    got = elementwise(f"%r = arith.{name} %a, %b : {dtype}", [left, right], dtype)
    np.testing.assert_array_equal(got.view(np.uint16), want.view(np.uint16))


@pytest.mark.parametrize(
    ("op", "want"),
    [
        ("addi", [-128, 0, -2, 121]),
        ("muli", [127, -1, 1, -120]),
        ("divsi", [127, -1, 1, 14]),
        ("divui", [127, -1, 1, 14]),
        ("remsi", [0, 0, 0, 1]),
        ("minsi", [1, -1, -1, 8]),
        ("minui", [1, 1, -1, 8]),
        ("maxui", [127, -1, -1, 113]),
        ("shli", [-2, -2, -128, 113]),
        ("shrui", [63, 127, 1, 113]),
        ("shrsi", [63, -1, -1, 113]),
        ("xori", [126, -2, 0, 121]),
    ],
)
def test_integers_wrap(op: str, want: list[int]) -> None:
    """Integers of 8 bits wrap, and read their bits with a sign or without one."""
    got = elementwise(f"%r = arith.{op} %a, %b : i8", [[127, -1, -1, 113], [1, 1, -1, 8]], "i8")
    np.testing.assert_array_equal(got[:4], np.array(want, np.int8))


@pytest.mark.parametrize(
    ("predicate", "want"),
    [("olt", [1, 0, 0, 0]), ("ult", [1, 0, 0, 1]), ("une", [1, 0, 1, 1]), ("one", [1, 0, 1, 0]), ("uno", [0, 0, 0, 1])],
)
def test_comparisons_of_floats(predicate: str, want: list[int]) -> None:
    """An ordered comparison with a NaN is false, an unordered one true."""
    op = f"%c = arith.cmpf {predicate}, %a, %b : f32\n  %r = arith.extui %c : i1 to i8"
    got = elementwise(op, [[1, 2, 3, np.nan], [2, 2, 2, 2]], "f32", result="i8")
    np.testing.assert_array_equal(got[:4], want)


def test_extremes_of_floats() -> None:
    """A NaN wins; of both zeros the larger one is the positive one."""
    left, right = [0.0, -0.0, np.nan, 1.0], [-0.0, 0.0, 1.0, 2.0]
    high = elementwise("%r = arith.maximumf %a, %b : f32", [left, right], "f32")[:4]
    low = elementwise("%r = arith.minimumf %a, %b : f32", [left, right], "f32")[:4]
    np.testing.assert_array_equal(high, [0, 0, np.nan, 2])
    np.testing.assert_array_equal(low, [0, 0, np.nan, 1])
    assert not np.signbit(high[:2]).any()
    assert np.signbit(low[:2]).all()


def test_floats_that_no_integer_holds() -> None:
    """A float outside of an integer's range gives the least integer, so that a guard that is missing is seen."""
    got = elementwise("%r = arith.fptosi %a : f32 to i32", [[1.9, -1.9, 3e9, np.nan]], "f32", result="i32")
    np.testing.assert_array_equal(got[:4], [1, -1, -(2**31), -(2**31)])


def test_double_precision_is_rounded_once() -> None:
    """A number of f64 just above a tie of bf16 goes up, though f32 holds the tie."""
    got = elementwise(
        "%r = arith.truncf %a : f64 to bf16", [[1 + 2**-8 + 2**-40, 1 + 2**-8, -1 - 3 * 2**-8]], "f64", result="bf16"
    )
    np.testing.assert_array_equal(got[:3].astype(np.float64), [1 + 2**-7, 1, -1 - 2**-6])


@pytest.mark.parametrize(
    ("op", "want"),
    [("ctlz", [32, 31, 0, 24]), ("ctpop", [0, 1, 32, 1]), ("cttz", [32, 0, 0, 7]), ("absi", [0, 1, 1, 128])],
)
def test_bits_are_counted(op: str, want: list[int]) -> None:
    """Zeros before and after the ones, and the ones, are counted."""
    got = elementwise(f"%r = math.{op} %a : i32", [[0, 1, -1, 128]], "i32")
    np.testing.assert_array_equal(got[:4], want)


@pytest.mark.parametrize(
    ("op", "want"),
    [
        ("round", [1.0, -1.0, 3.0, 0.0]),
        ("roundeven", [0.0, -0.0, 2.0, 0.0]),
        ("erf", [0.5204999, -0.5204999, 0.999593, 0.5204999]),
        ("rsqrt", [1.4142135, np.nan, 0.63245553, 1.4142136]),
    ],
)
def test_functions(op: str, want: list[float]) -> None:
    """Functions are rounded from f64; the number below a half is no half."""
    got = elementwise(
        f"%r = math.{op} %a : f32", [[0.5, -0.5, 2.5, np.nextafter(np.float32(0.5), np.float32(0))]], "f32"
    )
    np.testing.assert_allclose(got[:4], want, rtol=2e-7)


def test_complex_numbers() -> None:
    """Products are those of the parts, each rounded; quotients and functions are those of double precision."""
    rng = np.random.default_rng(2)
    left, right = (rng.normal(size=(2, 32)) + 1j * rng.normal(size=(2, 32))).astype(np.complex64)
    product = elementwise("%r = complex.mul %a, %b : complex<f32>", [left, right], "complex<f32>")
    np.testing.assert_array_equal(product.real, left.real * right.real - left.imag * right.imag)
    quotient = elementwise("%r = complex.div %a, %b : complex<f32>", [left, right], "complex<f32>")
    np.testing.assert_allclose(quotient, left / right, rtol=1e-6)
    same = elementwise(
        "%p = complex.re %a : complex<f32>\n%q = complex.im %a : complex<f32>"
        "\n%r = complex.create %p, %q : complex<f32>",
        [left],
        "complex<f32>",
    )
    np.testing.assert_array_equal(same, left)
