"""Complex numbers by their parts."""

from __future__ import annotations

import pytest

pytest.importorskip("xdsl", reason="kernels need the extra 'codegen'")

pytest.importorskip("numpy", reason="kernels need the extra 'codegen'")

import numpy as np

from shardy_py.kernels.launch.grid import Launch
from shardy_py.kernels.passes.complex_to_standard import ComplexToStandard
from tests.unit.kernels.module_texts import after, run

TEXT = """func.func @main(%x: tensor<64xcomplex<f32>>, %y: tensor<64xcomplex<f32>>,
    %o: tensor<64xRESULT>) -> tensor<64xRESULT> attributes {xla.entry} {
  %t = gpu.thread_id x {xla.range = [0 : index, 63 : index]}
  %a = tensor.extract %x[%t] : tensor<64xcomplex<f32>>
  %b = tensor.extract %y[%t] : tensor<64xcomplex<f32>>
  %w = BODY
  %r = tensor.insert %w into %o[%t] : tensor<64xRESULT>
  func.return %r : tensor<64xRESULT>
}"""
LAUNCH = Launch((1, 1, 1), (64, 1, 1))
UNARY = ("conj", "cos", "exp", "expm1", "log", "log1p", "neg", "rsqrt", "sign", "sin", "sqrt", "tan", "tanh")
BINARY = ("add", "atan2", "div", "mul", "pow", "sub")
# Against the largest element: units of the last place that formulas lose.
MOST = 16 * np.finfo(np.float32).eps


def numbers(seed: int) -> np.ndarray:
    """64 complex numbers around the origin."""
    random = np.random.default_rng(seed)
    return (random.normal(0, 1.5, 64) + 1j * random.normal(0, 1.5, 64)).astype(np.complex64)


def both(body: str, result: str = "complex<f32>", dtype: type = np.complex64) -> tuple[np.ndarray, np.ndarray]:
    """What a body computes before and after the pass."""
    text = TEXT.replace("BODY", body).replace("RESULT", result)
    lowered = after(text, ComplexToStandard())
    actual = {line.split(" = ")[1].split()[0] for line in lowered.splitlines() if " = complex." in line}
    assert actual <= {"complex.create", "complex.re", "complex.im"}
    like = np.zeros(64, dtype)
    x, y = numbers(0), numbers(1)
    return run(text, x, y, like=like, launch=LAUNCH), run(lowered, x, y, like=like, launch=LAUNCH)


@pytest.mark.parametrize("name", UNARY)
def test_functions_of_one_number(name: str) -> None:
    """Functions of their parts give what the functions give."""
    expected, actual = both(f"complex.{name} %a : complex<f32>")
    assert np.abs(expected - actual).max() <= MOST * np.abs(expected).max()


@pytest.mark.parametrize("name", BINARY)
def test_functions_of_two_numbers(name: str) -> None:
    """Arithmetic of their parts gives what the arithmetic gives."""
    expected, actual = both(f"complex.{name} %a, %b : complex<f32>")
    assert np.abs(expected - actual).max() <= 8 * MOST * np.abs(expected).max()


@pytest.mark.parametrize("name", ["abs", "angle"])
def test_amount_and_angle(name: str) -> None:
    """Amount and angle are floats."""
    expected, actual = both(f"complex.{name} %a : complex<f32>", "f32", np.float32)
    np.testing.assert_allclose(actual, expected, rtol=1e-6)


def test_amount_of_special_numbers() -> None:
    """Amounts are exact at zero and infinity and do not overflow between."""
    text = TEXT.replace("BODY", "complex.abs %a : complex<f32>").replace("RESULT", "f32")
    x = np.resize(np.array([0, np.inf, complex(0, np.inf), 3e38, 3e20 + 4e20j, 1e-30j], np.complex64), 64)
    actual = run(after(text, ComplexToStandard()), x, x, like=np.zeros(64, np.float32), launch=LAUNCH)
    np.testing.assert_allclose(actual[:6], [0, np.inf, np.inf, 3e38, 5e20, 1e-30], rtol=1e-6)


PARTS = np.array([0.0, -0.5, 1e-45, 1e-20, 1e10, -3e38, 95.0, np.inf], np.float32)
SPECIAL = np.array([complex(real, imaginary) for real in PARTS for imaginary in PARTS], np.complex64)


@pytest.mark.parametrize("name", ["exp", "log", "log1p", "rsqrt", "sign", "sin", "cos", "sqrt", "tan", "tanh"])
def test_functions_of_special_numbers(name: str) -> None:
    """Nothing overflows or vanishes on the way that does not at the end, in whatever quarter huge numbers lie."""
    text = TEXT.replace("BODY", f"complex.{name} %a : complex<f32>").replace("RESULT", "complex<f32>")
    like = np.zeros(64, np.complex64)
    expected = run(text, SPECIAL, SPECIAL, like=like, launch=LAUNCH)
    actual = run(after(text, ComplexToStandard()), SPECIAL, SPECIAL, like=like, launch=LAUNCH)
    finite = np.isfinite(SPECIAL) & np.isfinite(expected)
    assert finite.sum() >= 20
    for part in (np.real, np.imag):
        np.testing.assert_allclose(part(actual[finite]), part(expected[finite]), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    ("name", "x", "y", "expected"),
    [
        ("div", 3e38 + 3e38j, 3e38 + 3e38j, 1),
        ("div", 1e-45j, 1e-45 + 0j, 1j),
        ("div", 3e38 + 3e38j, 100, 3e36 + 3e36j),
        ("div", 2, complex(np.inf, 1), 0),
        ("div", 1e-38, 1e38 + 1e38j, 0),
        ("pow", 0, 2 + 1j, 0),
        ("pow", 0, 0, 1),
        ("pow", 0, -1, complex(np.nan, np.nan)),
        ("pow", complex(0, np.nan), 0, 1),
        ("pow", 3e38 + 3e38j, 0.5, 1.90298e19 + 7.88239e18j),
        ("atan2", 3e38, 3e38, np.pi / 4),
        ("atan2", 1e-40, 1e-40, np.pi / 4),
    ],
)
def test_arithmetic_of_special_numbers(name: str, x: complex, y: complex, expected: complex) -> None:
    """Quotients, powers and angles of huge and tiny numbers are those of exact arithmetic."""
    text = TEXT.replace("BODY", f"complex.{name} %a, %b : complex<f32>").replace("RESULT", "complex<f32>")
    arrays = [np.full(64, number, np.complex64) for number in (x, y)]
    actual = run(after(text, ComplexToStandard()), *arrays, like=np.zeros(64, np.complex64), launch=LAUNCH)[0]
    np.testing.assert_allclose([actual.real, actual.imag], [expected.real, expected.imag], rtol=1e-3, atol=1e-6)
