"""Special functions in kernels, against values of the C library and against laws that they obey."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

pytest.importorskip("jaxlib", reason="fusions are read through the extra 'stablehlo'")
pytest.importorskip("xdsl", reason="kernels need the extra 'codegen'")

import numpy as np

from shardy_py.kernels import emit
from tests.unit.kernels.fusions import fusion_of

ONE = """
func.func @main(%x: tensor<{n}x{type}>) -> tensor<{n}x{type}> {{
  %0 = chlo.{op} %x : tensor<{n}x{type}> -> tensor<{n}x{type}>
  return %0 : tensor<{n}x{type}>
}}"""
TWO = """
func.func @main(%x: tensor<{n}x{type}>, %y: tensor<{n}x{type}>) -> tensor<{n}x{type}> {{
  %0 = chlo.{op} %x, %y : tensor<{n}x{type}>, tensor<{n}x{type}> -> tensor<{n}x{type}>
  return %0 : tensor<{n}x{type}>
}}"""
TYPES = {"f32": (np.float32, 4e-6), "f64": (np.float64, 4e-14)}


def computed(op: str, type_: str, *arrays: np.ndarray) -> np.ndarray:
    """What the kernel of an op gives on the host, as doubles."""
    text = (ONE if len(arrays) == 1 else TWO).format(op=op, type=type_, n=len(arrays[0]))
    (actual,) = emit(fusion_of(text)).run(*arrays, on="host")
    return np.asarray(actual).astype(np.float64)


def numbers(dtype: type, count: int = 200) -> np.ndarray:
    """Numbers around zero, with a few that are large, small, or at borders of the formulas."""
    borders = [0.0, 0.5, -0.5, 1.0, -1.0, 2.0, -2.5, 8.0, -8.0, 20.0, 1e-20]
    return np.concatenate([borders, np.random.default_rng(3).normal(0, 3, count)]).astype(dtype)


@pytest.mark.parametrize("type_", TYPES)
@pytest.mark.parametrize(("op", "function"), [("erfc", math.erfc), ("lgamma", math.lgamma)])
def test_functions_of_the_c_library(op: str, function: Callable[[float], float], type_: str) -> None:
    """The complement of erf and the logarithm of the gamma function are those of the C library, near enough."""
    dtype, near = TYPES[type_]
    x = numbers(dtype)
    x = x[~((op == "lgamma") & (x <= 0) & (x == np.floor(x)))]
    # Numbers below are not of full precision, or zero.
    least = 20 * float(np.finfo(dtype).tiny)
    want = np.array([function(float(item)) for item in x])
    np.testing.assert_allclose(computed(op, type_, x), want, rtol=near, atol=near if op == "lgamma" else least)


@pytest.mark.parametrize("type_", TYPES)
def test_the_inverse_of_erf(type_: str) -> None:
    """It takes erf back, is infinite at both ends, and no number outside of them."""
    dtype, near = TYPES[type_]
    x = np.random.default_rng(1).uniform(-2.5, 2.5, 100)
    exact = np.array([math.erf(item) for item in x]).astype(dtype)
    actual = computed("erf_inv", type_, exact)
    np.testing.assert_allclose([math.erf(item) for item in actual], exact.astype(np.float64), rtol=near)
    ends = computed("erf_inv", type_, np.array([-1, 1, 0, 2], dtype))
    np.testing.assert_array_equal(ends, [-np.inf, np.inf, 0, np.nan])


@pytest.mark.parametrize("type_", TYPES)
def test_digamma_and_its_derivatives(type_: str) -> None:
    """Each step of the gamma function adds a power of the number: ``f(x + 1) = f(x) + 1 / x``."""
    dtype, near = TYPES[type_]
    x = np.random.default_rng(2).uniform(0.3, 9, 100).astype(dtype)
    after = x + dtype(1)
    step = computed("digamma", type_, after) - computed("digamma", type_, x)
    np.testing.assert_allclose(step, 1 / x.astype(np.float64), rtol=200 * near, atol=20 * near)
    order = np.full_like(x, 2)
    change = computed("polygamma", type_, order, after) - computed("polygamma", type_, order, x)
    np.testing.assert_allclose(change, 2 / x.astype(np.float64) ** 3, rtol=500 * near, atol=50 * near)
    poles = computed("digamma", type_, np.array([0, -1, -2], dtype))
    assert np.isnan(poles).all()


@pytest.mark.parametrize("type_", TYPES)
def test_zeta_of_one_is_a_sum_of_powers(type_: str) -> None:
    """Riemann's values at 2 and 4 are known."""
    dtype, near = TYPES[type_]
    actual = computed("zeta", type_, np.array([2, 4], dtype), np.array([1, 1], dtype))
    np.testing.assert_allclose(actual, [math.pi**2 / 6, math.pi**4 / 90], rtol=near)


@pytest.mark.parametrize("type_", TYPES)
def test_the_bessel_function_is_its_integral(type_: str) -> None:
    """It is the mean of ``exp(x cos t - |x|) cos t`` over a period, which a sum over equal steps is, nearly."""
    dtype, near = TYPES[type_]
    x = numbers(dtype, 40)
    angles = np.linspace(0, 2 * np.pi, 4000, endpoint=False)
    wide = x.astype(np.float64)[:, None]
    want = (np.exp(wide * np.cos(angles) - np.abs(wide)) * np.cos(angles)).mean(axis=1)
    np.testing.assert_allclose(computed("bessel_i1e", type_, x), want, rtol=10 * near, atol=near / 10)


@pytest.mark.parametrize("type_", TYPES)
def test_the_next_number(type_: str) -> None:
    """It is that of numpy, also across zero, from equal numbers and from infinities."""
    dtype, _ = TYPES[type_]
    x = np.array([0, 0, -0.0, 1, 1, -1, 3, np.inf, np.nan, 1e-45], dtype)
    y = np.array([1, -1, 0, 2, 0, 1, 3, 0, 1, -1], dtype)
    np.testing.assert_array_equal(computed("next_after", type_, x, y), np.nextafter(x, y).astype(np.float64))


@pytest.mark.parametrize("bits", [8, 32, 64])
@pytest.mark.parametrize("sign", ["i", "ui"])
def test_the_upper_half_of_a_product(sign: str, bits: int) -> None:
    """It is that of integers of any size, with a sign and without."""
    dtype = np.dtype(f"{'u' if sign == 'ui' else ''}int{bits}")
    least, most = (int(bound) for bound in (np.iinfo(dtype).min, np.iinfo(dtype).max))
    random = np.random.default_rng(bits)
    ends = np.array([least, most], dtype)
    x, y = (np.append(random.integers(least, most, 30, dtype, endpoint=True), ends) for _ in range(2))
    text = TWO.format(op="mulhi", type=f"{sign}{bits}", n=len(x))
    (actual,) = emit(fusion_of(text)).run(x, y, on="host")
    assert actual.tolist() == [(left * right) >> bits for left, right in zip(x.tolist(), y.tolist(), strict=True)]


def test_halves_are_computed_in_single_precision() -> None:
    """A result of ``bf16`` is that of ``f32``, rounded."""
    import ml_dtypes

    x = numbers(np.float32).astype(ml_dtypes.bfloat16)
    text = ONE.format(op="erfc", type="bf16", n=len(x))
    (actual,) = emit(fusion_of(text)).run(x, on="host")
    wide = computed("erfc", "f32", x.astype(np.float32))
    np.testing.assert_array_equal(actual, wide.astype(np.float32).astype(ml_dtypes.bfloat16))


def test_operands_are_broadcast() -> None:
    """A client op aligns the dimensions of its operands; those of size 1 are read at 0."""
    text = """
func.func @main(%x: tensor<3x1xf32>, %y: tensor<4xf32>) -> tensor<3x4xf32> {
  %0 = chlo.broadcast_subtract %x, %y : (tensor<3x1xf32>, tensor<4xf32>) -> tensor<3x4xf32>
  return %0 : tensor<3x4xf32>
}"""
    x, y = np.arange(3, dtype=np.float32)[:, None], np.arange(4, dtype=np.float32) * 10
    for on in ("host", "interpreter"):
        np.testing.assert_array_equal(emit(fusion_of(text)).run(x, y, on=on)[0], x - y)
