"""Functions of complex numbers in terms of functions of their parts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from shardy_py.emitters.passes.scalar_terms import Term

Pair = tuple[Term, Term]


def add(x: Pair, y: Pair) -> Pair:
    """Return the sum."""
    return x[0] + y[0], x[1] + y[1]


def sub(x: Pair, y: Pair) -> Pair:
    """Return the difference."""
    return x[0] - y[0], x[1] - y[1]


def mul(x: Pair, y: Pair) -> Pair:
    """Return the product."""
    return x[0] * y[0] - x[1] * y[1], x[0] * y[1] + x[1] * y[0]


def div(x: Pair, y: Pair) -> Pair:
    """Return the quotient by Smith's method: the divisor is scaled by its larger part."""
    (a, b), (c, d) = x, y
    is_real = c.math("absf").compare("oge", d.math("absf"))
    major, minor = c.where(is_real, d), d.where(is_real, c)
    ratio = minor / major
    under = major + minor * ratio
    real = (a + b * ratio).where(is_real, a * ratio + b)
    imaginary = (b - a * ratio).where(is_real, b * ratio - a)
    return real / under, imaginary / under


def neg(x: Pair) -> Pair:
    """Return the negative number."""
    return -x[0], -x[1]


def conj(x: Pair) -> Pair:
    """Return the conjugate."""
    return x[0], -x[1]


def amount(x: Pair) -> Term:
    """Return the absolute value, without an overflow of squares."""
    real, imaginary = x[0].math("absf"), x[1].math("absf")
    large, small = real.most(imaginary), real.least(imaginary)
    ratio = small / large
    is_zero = large.compare("oeq", 0.0)
    found = large.where(large.compare("oeq", float("inf")), large * (ratio * ratio + 1.0).math("sqrt"))
    return large.where(is_zero, found)


def angle(x: Pair) -> Term:
    """Return the angle."""
    return x[1].math("atan2", x[0])


def exp(x: Pair) -> Pair:
    """Return the exponential."""
    scale = x[0].math("exp")
    return scale * x[1].math("cos"), scale * x[1].math("sin")


def expm1(x: Pair) -> Pair:
    """Return the exponential without 1, also for small numbers: ``cos(b) - 1 = -2 sin(b/2)^2``."""
    less, (_, imaginary) = x[0].math("expm1"), exp(x)
    half = (x[1] * 0.5).math("sin")
    cosine_less = half * half * -2.0
    return less * x[1].math("cos") + cosine_less, imaginary


def log(x: Pair) -> Pair:
    """Return the logarithm; near the unit circle from ``|x|^2 - 1``, in which nothing is lost."""
    size = amount(x)
    real, imaginary = x[0].math("absf"), x[1].math("absf")
    large, small = real.most(imaginary), real.least(imaginary)
    square_less = (large - 1.0) * (large + 1.0) + small * small
    near = square_less.math("log1p") * 0.5
    is_near = (size - 1.0).math("absf").compare("olt", 0.4)
    return near.where(is_near, size.math("log")), angle(x)


def log1p(x: Pair) -> Pair:
    """Return the logarithm of 1 + x; the amount of small numbers is kept."""
    square = x[0] * (x[0] + 2.0) + x[1] * x[1]
    return square.math("log1p") * 0.5, x[1].math("atan2", x[0] + 1.0)


def sqrt(x: Pair) -> Pair:
    """Return the square root with a positive real part."""
    larger = ((amount(x) + x[0].math("absf")) * 0.5).math("sqrt")
    smaller = x[1].math("absf") / (larger + larger)
    is_zero = larger.compare("oeq", 0.0)
    smaller = larger.where(is_zero, smaller)
    is_right = x[0].compare("oge", 0.0)
    real, imaginary = larger.where(is_right, smaller), smaller.where(is_right, larger)
    return real, imaginary.math("copysign", x[1])


def rsqrt(x: Pair) -> Pair:
    """Return one over the square root."""
    root = sqrt(x)
    one = Term(root[0].of(1.0), root[0].before)
    return div((one, Term(one.of(0.0), one.before)), root)


def sign(x: Pair) -> Pair:
    """Return the number of amount 1 in the same direction; 0 for 0."""
    size = amount(x)
    is_zero = size.compare("oeq", 0.0)
    return x[0].where(is_zero, x[0] / size), x[1].where(is_zero, x[1] / size)


def _hyperbolic(x: Term) -> Pair:
    """Return the hyperbolic sine and cosine."""
    whole, less = x.math("exp"), x.math("expm1")
    sine = (less + less / whole) * 0.5
    cosine = (whole + Term(x.of(1.0), x.before) / whole) * 0.5
    return sine, cosine


def sin(x: Pair) -> Pair:
    """Return the sine."""
    sine, cosine = _hyperbolic(x[1])
    return x[0].math("sin") * cosine, x[0].math("cos") * sine


def cos(x: Pair) -> Pair:
    """Return the cosine."""
    sine, cosine = _hyperbolic(x[1])
    return x[0].math("cos") * cosine, -(x[0].math("sin") * sine)


def tan(x: Pair) -> Pair:
    """Return the tangent."""
    real, imaginary = tanh((-x[1], x[0]))
    return imaginary, -real


def tanh(x: Pair) -> Pair:
    """Return the hyperbolic tangent by Kahan's formula; it is 1 long before squares overflow."""
    limit = 300.0 if str(x[0].type) == "f64" else 20.0
    steep = x[1].math("tan")
    sine, cosine = _hyperbolic(x[0].most(-limit).least(limit))
    slope = steep * steep + 1.0
    under = slope * sine * sine + 1.0
    return slope * cosine * sine / under, steep / under


def power(x: Pair, y: Pair) -> Pair:
    """Return a power: ``exp(y log x)``; 0 to the power of what is not 0 is 0."""
    size = amount(x)
    real, imaginary = exp(mul(y, log(x)))
    is_zero = size.compare("oeq", 0.0)
    base = size.where(amount(y).compare("one", 0.0), 1.0)
    return base.where(is_zero, real), size.where(is_zero, imaginary)


def atan2(y: Pair, x: Pair) -> Pair:
    """Return the angle of complex numbers: ``-i log((x + i y) / sqrt(x^2 + y^2))``."""
    over = (x[0] - y[1], x[1] + y[0])
    real, imaginary = log(div(over, sqrt(add(mul(x, x), mul(y, y)))))
    return imaginary, -real


FUNCTIONS: Mapping[str, Callable[..., Any]] = MappingProxyType(
    {
        **{"abs": amount, "add": add, "angle": angle, "atan2": atan2, "conj": conj, "cos": cos, "div": div},
        **{"exp": exp, "expm1": expm1, "log": log, "log1p": log1p, "mul": mul, "neg": neg, "pow": power},
        **{"rsqrt": rsqrt, "sign": sign, "sin": sin, "sqrt": sqrt, "sub": sub, "tan": tan, "tanh": tanh},
    }
)
