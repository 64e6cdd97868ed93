"""Functions of complex numbers that no op of a kernel computes: hyperbolic ones, and inverse functions.

The inverse functions are those of W. Kahan, "Branch Cuts for Complex Elementary Functions" (1987): square roots of
``1 - z`` and ``1 + z``, so that no digits are lost near the branch points, and the signs of zeros choose the branch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from shardy_py.plugins import ElementBuilder, Scalar

Parts = tuple[Scalar, Scalar]


class _Arithmetic:
    """Real and complex operations on parts of one type."""

    def __init__(self, b: ElementBuilder, type_: str) -> None:
        self._b = b
        self.type = type_
        self.one = self.constant(1.0)

    def constant(self, value: float) -> Scalar:
        return self._b.constant(value, self.type)

    def op(self, name: str, *values: Scalar) -> Scalar:
        return self._b.op(name, *values)

    def add(self, x: Scalar, y: Scalar) -> Scalar:
        return self.op("arith.addf", x, y)

    def sub(self, x: Scalar, y: Scalar) -> Scalar:
        return self.op("arith.subf", x, y)

    def mul(self, x: Scalar, y: Scalar) -> Scalar:
        return self.op("arith.mulf", x, y)

    def neg(self, x: Scalar) -> Scalar:
        return self.op("arith.negf", x)

    def pair(self, x: Scalar, y: Scalar) -> Scalar:
        return self._b.op("complex.create", x, y, dtype=f"complex<{self.type}>")

    def parts(self, z: Scalar) -> Parts:
        return self._b.op("complex.re", z, dtype=self.type), self._b.op("complex.im", z, dtype=self.type)

    def root(self, x: Scalar, y: Scalar) -> Parts:
        return self.parts(self.op("complex.sqrt", self.pair(x, y)))


def _product(a: _Arithmetic, first: Parts, second: Parts, *, conjugated: bool = False) -> Parts:
    """Return the product of two numbers, of which the first one may be conjugated."""
    x, y = first
    y = a.neg(y) if conjugated else y
    return a.sub(a.mul(x, second[0]), a.mul(y, second[1])), a.add(a.mul(x, second[1]), a.mul(y, second[0]))


def _roots(a: _Arithmetic, x: Scalar, y: Scalar) -> tuple[Parts, Parts]:
    """Return the square roots of ``1 - z`` and of ``1 + z``."""
    return a.root(a.sub(a.one, x), a.neg(y)), a.root(a.add(a.one, x), y)


def _asin(a: _Arithmetic, x: Scalar, y: Scalar) -> Parts:
    minus, plus = _roots(a, x, y)
    real, _ = _product(a, minus, plus)
    _, imaginary = _product(a, minus, plus, conjugated=True)
    return a.op("math.atan2", x, real), a.op("math.asinh", imaginary)


def _acos(a: _Arithmetic, x: Scalar, y: Scalar) -> Parts:
    minus, plus = _roots(a, x, y)
    _, imaginary = _product(a, plus, minus, conjugated=True)
    angle = a.op("math.atan2", minus[0], plus[0])
    return a.add(angle, angle), a.op("math.asinh", imaginary)


def _asinh(a: _Arithmetic, x: Scalar, y: Scalar) -> Parts:
    real, imaginary = _asin(a, a.neg(y), x)
    return imaginary, a.neg(real)


def _acosh(a: _Arithmetic, x: Scalar, y: Scalar) -> Parts:
    minus, plus = a.root(a.sub(x, a.one), y), a.root(a.add(x, a.one), y)
    real, _ = _product(a, minus, plus, conjugated=True)
    angle = a.op("math.atan2", minus[1], plus[0])
    return a.op("math.asinh", real), a.add(angle, angle)


def _atanh(a: _Arithmetic, x: Scalar, y: Scalar) -> Parts:
    far, near = a.add(a.one, x), a.sub(a.one, x)
    ratio = a.op("arith.divf", a.mul(a.constant(4.0), x), a.add(a.mul(near, near), a.mul(y, y)))
    real = a.mul(a.constant(0.25), a.op("math.log1p", ratio))
    below = a.sub(a.mul(near, far), a.mul(y, y))
    return real, a.mul(a.constant(0.5), a.op("math.atan2", a.add(y, y), below))


def _atan(a: _Arithmetic, x: Scalar, y: Scalar) -> Parts:
    real, imaginary = _atanh(a, a.neg(y), x)
    return imaginary, a.neg(real)


def _sinh(a: _Arithmetic, x: Scalar, y: Scalar) -> Parts:
    real = a.mul(a.op("math.sinh", x), a.op("math.cos", y))
    return real, a.mul(a.op("math.cosh", x), a.op("math.sin", y))


def _cosh(a: _Arithmetic, x: Scalar, y: Scalar) -> Parts:
    real = a.mul(a.op("math.cosh", x), a.op("math.cos", y))
    return real, a.mul(a.op("math.sinh", x), a.op("math.sin", y))


_FUNCTIONS: Mapping[str, Callable[[_Arithmetic, Scalar, Scalar], Parts]] = MappingProxyType(
    {
        "math.acos": _acos,
        "math.acosh": _acosh,
        "math.asin": _asin,
        "math.asinh": _asinh,
        "math.atan": _atan,
        "math.atanh": _atanh,
        "math.cosh": _cosh,
        "math.sinh": _sinh,
    }
)


def complex_function(name: str, b: ElementBuilder, z: Scalar) -> Scalar | None:
    """Return a function of a complex number, or None where there is none of this name.

    Args:
        name: The op of ``math`` that computes it for real numbers.
        b: The builder.
        z: The number.
    """
    compute = _FUNCTIONS.get(name)
    if compute is None:
        return None
    a = _Arithmetic(b, z.dtype[len("complex<") : -1])
    return a.pair(*compute(a, *a.parts(z)))
