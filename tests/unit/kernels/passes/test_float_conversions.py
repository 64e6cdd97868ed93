"""Functions of floats of 16 bits, functions as rational ones, and conversions of small floats."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest

from shardy_py.kernels import read_fusion
from shardy_py.kernels.kernel import emit
from shardy_py.kernels.launch.grid import Launch
from shardy_py.kernels.passes.float_conversions import ConvertFloat, ExpandFloat
from tests.unit.kernels.module_texts import after, run

pytest.importorskip("xdsl", reason="kernels need the extra 'codegen'")

pytest.importorskip("numpy", reason="kernels need the extra 'codegen'")

TEXT = """func.func @main(%x: tensor<32xTYPE>, %o: tensor<32xTYPE>) -> tensor<32xTYPE> attributes {xla.entry} {
  %t = gpu.thread_id x {xla.range = [0 : index, 31 : index]}
  %v = tensor.extract %x[%t] : tensor<32xTYPE>
  %w = math.NAME %v : TYPE
  %r = tensor.insert %w into %o[%t] : tensor<32xTYPE>
  func.return %r : tensor<32xTYPE>
}"""
LAUNCH = Launch((1, 1, 1), (32, 1, 1))


@pytest.mark.parametrize(("dtype", "name"), [(ml_dtypes.bfloat16, "bf16"), (np.float16, "f16")])
@pytest.mark.parametrize("function", ["exp", "log", "sin", "rsqrt"])
def test_functions_are_computed_in_f32(dtype: object, name: str, function: str) -> None:
    """The function is one of f32 between a widening and a rounding, and is off by one unit at most."""
    text = TEXT.replace("TYPE", name).replace("NAME", function)
    actual = after(text, ConvertFloat())
    assert f": {name}" not in "".join(line for line in actual.splitlines() if "math." in line)
    x = np.linspace(0.1, 4, 32).astype(dtype)
    near, got = run(text, x, launch=LAUNCH), run(actual, x, launch=LAUNCH)
    assert np.abs(near.view(np.int16).astype(int) - got.view(np.int16)).max() <= 1


def test_powers_of_two_approximate() -> None:
    """Exponentials and logarithms are those of base two, which devices approximate."""
    assert "math.exp2 %" in after(TEXT.replace("TYPE", "bf16").replace("NAME", "exp"), ConvertFloat())
    assert "fastmath<afn>" in after(TEXT.replace("TYPE", "bf16").replace("NAME", "log"), ConvertFloat())


def test_other_functions_stay() -> None:
    """What touches the sign only, and functions of wider floats, stay."""
    for name, function in (("bf16", "absf"), ("f32", "exp")):
        text = after(TEXT.replace("TYPE", name).replace("NAME", function))
        assert after(text, ConvertFloat()) == text


pytest.importorskip("xdsl", reason="kernels need the extra 'codegen'")

pytest.importorskip("numpy", reason="kernels need the extra 'codegen'")

EXPANDED_TEXT = """func.func @main(%x: tensor<4096xf32>, %o: tensor<4096xf32>) -> tensor<4096xf32>
    attributes {xla.entry} {
  %t = gpu.thread_id x {xla.range = [0 : index, 1023 : index]}
  %b = gpu.block_id x {xla.range = [0 : index, 3 : index]}
  %i = xla_gpu.apply_indexing #xla_gpu.indexing_map<"(t, b) -> (b * 1024 + t), "
      "domain: t in [0, 1023], b in [0, 3]">(%t, %b)
  %v = tensor.extract %x[%i] : tensor<4096xf32>
  %w = math.NAME %v : f32
  %r = tensor.insert %w into %o[%i] : tensor<4096xf32>
  func.return %r : tensor<4096xf32>
}"""
EXPANDED_LAUNCH = Launch((4, 1, 1), (1024, 1, 1))


@pytest.mark.parametrize(("name", "function", "ulps"), [("tanh", math.tanh, 5), ("erf", math.erf, 5)])
def test_rational_functions_are_near(name: str, function: object, ulps: float) -> None:
    """The rational function is some units of the last place away from the function, over all of its range."""
    text = after(EXPANDED_TEXT.replace("NAME", name), ExpandFloat())
    assert f"math.{name}" not in text
    x = np.concatenate([np.linspace(-30, 30, 2048), np.geomspace(1e-6, 5, 2048)]).astype(np.float32)
    expected = np.array([function(value) for value in x.tolist()])  # type: ignore[operator]
    apart = np.abs(run(text, x, launch=EXPANDED_LAUNCH).astype(np.float64) - expected) / np.spacing(
        np.abs(expected).astype(np.float32)
    )
    assert apart.max() <= ulps


def test_special_numbers() -> None:
    """Infinities give 1, zeros keep their sign, a NaN stays one."""
    special = np.array([math.inf, -math.inf, 0.0, -0.0, math.nan], np.float32)
    x = np.resize(special, 4096)
    actual = run(after(EXPANDED_TEXT.replace("NAME", "tanh"), ExpandFloat()), x, launch=EXPANDED_LAUNCH)[:5]
    np.testing.assert_array_equal(actual, [1, -1, 0, 0, math.nan])
    assert list(np.signbit(actual[2:4])) == [False, True]


pytest.importorskip("llvmlite", reason="kernels on the host need the extra 'codegen'")

KINDS = {
    "f8E4M3FN": ml_dtypes.float8_e4m3fn,
    "f8E5M2": ml_dtypes.float8_e5m2,
    "f8E4M3FNUZ": ml_dtypes.float8_e4m3fnuz,
    "f8E8M0FNU": ml_dtypes.float8_e8m0fnu,
    "f4E2M1FN": ml_dtypes.float4_e2m1fn,
}
CONVERT = """
func.func @main(%arg0: tensor<{size}x{source}>) -> tensor<{size}x{target}> {{
  %0 = stablehlo.convert %arg0 : (tensor<{size}x{source}>) -> tensor<{size}x{target}>
  return %0 : tensor<{size}x{target}>
}}
"""
ADD = """
func.func @main(%arg0: tensor<256xf8E4M3FN>, %arg1: tensor<256xf8E4M3FN>) -> tensor<256xf8E4M3FN> {
  %0 = stablehlo.constant dense<1.6> : tensor<256xf8E4M3FN>
  %1 = stablehlo.multiply %arg1, %0 : tensor<256xf8E4M3FN>
  %2 = stablehlo.add %arg0, %1 : tensor<256xf8E4M3FN>
  return %2 : tensor<256xf8E4M3FN>
}
"""
SUM_OF_POWERS = """
func.func @main(%x: tensor<2x64xf8E8M0FNU>, %init: tensor<f8E8M0FNU>) -> tensor<2xf8E8M0FNU> {
  %0 = stablehlo.reduce(%x init: %init) applies stablehlo.add across dimensions = [1]
      : (tensor<2x64xf8E8M0FNU>, tensor<f8E8M0FNU>) -> tensor<2xf8E8M0FNU>
  return %0 : tensor<2xf8E8M0FNU>
}
"""
WITH_LEAST_POWER = """
func.func @main(%x: tensor<4xf8E8M0FNU>) -> tensor<4xf8E8M0FNU> {{
  %0 = stablehlo.constant dense<0.0> : tensor<4xf8E8M0FNU>
  %1 = stablehlo.{name} %x, %0 : tensor<4xf8E8M0FNU>
  return %1 : tensor<4xf8E8M0FNU>
}}
"""
MACHINES = ("interpreter", "host")


def bits(array: np.ndarray) -> np.ndarray:
    """The bits of floats, those of all NaNs alike."""
    with np.errstate(invalid="ignore"):
        wide = array.astype(np.float64)
    return np.where(np.isnan(wide), 0, wide.view(np.uint64))


def all_codes(name: str) -> np.ndarray:
    """The numbers of a type, by their bits."""
    return np.arange(16 if name.startswith("f4") else 256, dtype=np.uint8).view(KINDS[name])


@pytest.mark.parametrize("name", KINDS)
def test_every_code_is_read(name: str) -> None:
    """All codes, subnormals, infinities and NaNs among them, are the numbers that the format says."""
    codes = all_codes(name)
    kernel = emit(read_fusion(CONVERT.format(size=codes.size, source=name, target="f32")))
    for machine in MACHINES:
        (actual,) = kernel.run(codes, on=machine)
        assert (bits(actual) == bits(codes)).all(), machine


@pytest.mark.parametrize("name", KINDS)
def test_numbers_are_rounded_to_the_nearest(name: str) -> None:
    """Numbers between two codes become the nearer one, halves the even one, those beyond the last one no number.

    Powers of two are rounded up from the half on, and types without NaN end with their largest number.
    """
    known = all_codes(name).astype(np.float32)
    finite = np.sort(known[np.isfinite(known)])
    halves = (finite[1:] + finite[:-1]) / np.float32(2)
    near = [np.nextafter(halves, np.float32(side)) for side in (-np.inf, np.inf)]
    beyond = np.float32([np.inf, -np.inf, np.nan, 1e6, -1e6, 465, 464, 1e-30, -1e-30, -0.0])
    numbers = np.concatenate([finite, halves, *near, beyond]).astype(np.float32)
    kernel = emit(read_fusion(CONVERT.format(size=numbers.size, source="f32", target=name)))
    for machine in MACHINES:
        (actual,) = kernel.run(numbers, on=machine)
        assert (bits(actual) == bits(numbers.astype(KINDS[name]))).all(), machine


@pytest.mark.parametrize("on", MACHINES)
def test_powers_of_two_of_f64(on: str) -> None:
    """Like XLA: no number is below the least power, and all between it and the next one are the next one."""
    x = np.array([0.0, -1.0, 2.0**-128, 2.0**-127, 1.1 * 2.0**-127, 1.4, 1.5, 1.5 * 2.0**127], np.float64)
    (result,) = emit(read_fusion(CONVERT.format(size=8, source="f64", target="f8E8M0FNU"))).run(x, on=on)  # type: ignore[arg-type]
    assert result.view(np.uint8).tolist() == [255, 255, 255, 0, 1, 127, 128, 255]


def test_arithmetic_rounds_every_result() -> None:
    """Products and sums are those of the type: computed as f32, then rounded, as are constants."""
    rng = np.random.default_rng(0)
    left, right = (rng.integers(0, 256, 256, np.uint8).view(ml_dtypes.float8_e4m3fn) for _ in range(2))
    (actual,) = emit(read_fusion(ADD)).run(left, right)
    assert (bits(actual) == bits(left + right * ml_dtypes.float8_e4m3fn(1.6))).all()


FUNCTIONS = """
func.func @main(%x: tensor<{size}x{name}>) -> (tensor<{size}xi1>, tensor<{size}x{name}>, tensor<{size}x{name}>) {{
  %0 = stablehlo.is_finite %x : (tensor<{size}x{name}>) -> tensor<{size}xi1>
  %1 = stablehlo.sign %x : tensor<{size}x{name}>
  %2 = stablehlo.logistic %x : tensor<{size}x{name}>
  return %0, %1, %2 : tensor<{size}xi1>, tensor<{size}x{name}>, tensor<{size}x{name}>
}}
"""


@pytest.mark.parametrize("name", KINDS)
def test_functions_use_numbers_that_a_small_type_lacks(name: str) -> None:
    """An infinity, a zero and numbers with a minus are those of f32, and the result is rounded once."""
    codes = all_codes(name)
    x = codes.astype(np.float32)
    with np.errstate(over="ignore"):
        logistic = 1 / (1 + np.exp(-x))
    is_finite, sign, rounded = emit(read_fusion(FUNCTIONS.format(size=codes.size, name=name))).run(codes, on="host")
    assert (is_finite == np.isfinite(x)).all()
    assert (bits(sign) == bits(np.where(x == 0, x, np.sign(x)).astype(KINDS[name]))).all()
    assert (bits(rounded) == bits(logistic.astype(KINDS[name]))).all()


def test_powers_of_two_are_summed_without_a_zero() -> None:
    """No thread can begin with a number that changes no sum, so that each result is summed by one thread."""
    x = np.full((2, 64), 2.0**-127).astype(ml_dtypes.float8_e8m0fnu)
    x[:, 7] = 1
    (sums,) = emit(read_fusion(SUM_OF_POWERS)).run(x, np.float32(1).astype(x.dtype), on="host")
    assert sums.tolist() == [2, 2]


@pytest.mark.parametrize(
    ("name", "exponents"),
    [("minimum", [-127] * 4), ("maximum", [-127, -126, -125, 0]), ("add", [-126, -125, -125, 0])],
)
def test_the_least_power_of_two_is_no_zero(name: str, exponents: list[int]) -> None:
    """It is a subnormal number of f32, and what MLIR makes of a zero; sums are rounded to a power, halves up."""
    x = (2.0 ** np.array([-127.0, -126.0, -125.0, 0.0])).astype(ml_dtypes.float8_e8m0fnu)
    kernel = emit(read_fusion(WITH_LEAST_POWER.format(name=name)))
    for on in MACHINES:
        (result,) = kernel.run(x, on=on)
        assert result.astype(np.float64).tolist() == [2.0**exponent for exponent in exponents]
