"""Functions of complex numbers in terms of functions of their parts."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from shardy_py.kernels.passes.scalar_terms import ScalarTerm
from shardy_py.values import frozen

Pair = tuple[ScalarTerm, ScalarTerm]


@frozen
class _Range:
    """The range of a type of floats.

    Args:
        limit: The exponent above which numbers are large, and below minus which they are small.
        power: The exponent of the factor that brings such numbers to where squares neither overflow nor vanish; even.
        least_exponent: The exponent below which quotients lose digits.
        step: The exponent of the factor that brings such numbers up.
        exponent: The amount up to which exponentials neither overflow nor vanish.
    """

    limit: int
    power: int
    least_exponent: int
    step: int
    exponent: float


_RANGES: Mapping[str, _Range] = MappingProxyType(
    {"f32": _Range(50, 80, -100, 48, 80.0), "f64": _Range(500, 600, -960, 104, 700.0)}
)


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
    """Return the quotient by Smith's method: the divisor is scaled by its larger part.

    Both are brought into a range first in which nothing overflows, as Baudin and Smith do (A Robust Complex Division in
    Scilab, 2012). A quotient by zero has the quotients of the parts by zero, as that of numpy.
    """
    range_ = _RANGES[str(x[0].type)]
    over, under_ = _larger(x), _larger(y)
    tiny, step = 2.0**range_.least_exponent, 2.0**range_.step
    by = _chosen_factor(over, tiny, step, 0.25 / tiny, 0.25)
    of = _chosen_factor(under_, tiny, step, 0.25 / tiny, 0.25)
    quotient = _smith(_times(x, by), _times(y, of))
    scale = of / by
    is_zero = under_.compare("oeq", 0.0)
    parts = zip(x, quotient, strict=True)
    real, imaginary = ((part / under_).where(is_zero, scaled * scale) for part, scaled in parts)
    return real, imaginary


def _smith(x: Pair, y: Pair) -> Pair:
    (a, b), (c, d) = x, y
    is_real = c.math("absf").compare("oge", d.math("absf"))
    major, minor = c.where(is_real, d), d.where(is_real, c)
    ratio = minor / major
    under = major + minor * ratio
    is_lost, is_zero = ratio.compare("oeq", 0.0), minor.compare("oeq", 0.0)
    products = [part * ratio for part in (a, b)]
    other = [(minor * (part / major)).where(is_lost, product) for part, product in zip((a, b), products, strict=True)]
    by_ratio = [product.where(is_zero, by_division) for product, by_division in zip(products, other, strict=True)]
    real = (a + by_ratio[1]).where(is_real, by_ratio[0] + b)
    imaginary = (b - by_ratio[0]).where(is_real, by_ratio[1] - a)
    return real / under, imaginary / under


def neg(x: Pair) -> Pair:
    """Return the negative number."""
    return -x[0], -x[1]


def conj(x: Pair) -> Pair:
    """Return the conjugate."""
    return x[0], -x[1]


def amount(x: Pair) -> ScalarTerm:
    """Return the absolute value, without an overflow of squares; infinite where a part is."""
    real, imaginary = x[0].math("absf"), x[1].math("absf")
    large, small = real.most(imaginary), real.least(imaginary)
    ratio = small / large
    size = large.where(large.compare("oeq", 0.0), large * (ratio * ratio + 1.0).math("sqrt"))
    return _or_infinity(x, size)


def _or_infinity(x: Pair, number: ScalarTerm) -> ScalarTerm:
    """Return a number, or infinity where a part of a complex number is infinite."""
    for part in x:
        size = part.math("absf")
        number = size.where(size.compare("oeq", math.inf), number)
    return number


def _larger(x: Pair) -> ScalarTerm:
    return x[0].math("absf").most(x[1].math("absf"))


def _times(x: Pair, factor: ScalarTerm | float) -> Pair:
    return x[0] * factor, x[1] * factor


def _chosen_factor(size: ScalarTerm, small: float, by_small: float, large: float, by_large: float) -> ScalarTerm:
    """Return the factor of small sizes, of large ones, or 1."""
    other = ScalarTerm(size.of(by_large), size.before).where(size.compare("oge", large), 1.0)
    return ScalarTerm(size.of(by_small), size.before).where(size.compare("ole", small), other)


def _scaled(x: Pair) -> tuple[Pair, ScalarTerm]:
    """Return a number whose squares neither overflow nor vanish, and the factor that brings it back."""
    factor, back = _factors(_larger(x))
    return _times(x, factor), back


def _factors(size: ScalarTerm) -> Pair:
    """Return the factors to where the squares of numbers of a size neither overflow nor vanish, and back."""
    range_ = _RANGES[str(size.type)]
    step, limit = 2.0**range_.power, 2.0**range_.limit
    return (
        _chosen_factor(size, 1 / limit, step, limit, 1 / step),
        _chosen_factor(size, 1 / limit, 1 / step, limit, step),
    )


def angle(x: Pair) -> ScalarTerm:
    """Return the angle."""
    return x[1].math("atan2", x[0])


def exp(x: Pair) -> Pair:
    """Return the exponential; where ``exp(real)`` may overflow, the parts are multiplied by its root twice."""
    limit = _RANGES[str(x[0].type)].exponent
    is_large = x[0].math("absf").compare("ogt", limit)
    magnitude, half = x[0].math("exp"), (x[0] * 0.5).math("exp")
    parts = [x[1].math(name) for name in ("cos", "sin")]
    real, imaginary = ((half * part * half).where(is_large, magnitude * part) for part in parts)
    # At an infinite real part the angle does not count, unless it says which way infinity lies.
    is_endless = (x[1] * 0.0).compare("uno", 0.0)
    real = x[0].math("absf").where(x[0].compare("oeq", math.inf), magnitude).where(is_endless, real)
    vanishes = half.compare("oeq", 0.0)
    real, imaginary = (magnitude.where(is_endless, part).where(vanishes, part) for part in (real, imaginary))
    real = (x[0] + x[1]).where(x[0].compare("uno", x[0]), real)
    return real, x[1].where(x[1].compare("oeq", 0.0), imaginary)


def expm1(x: Pair) -> Pair:
    """Return the exponential without 1, also for small numbers: ``cos(b) - 1 = -2 sin(b/2)^2``."""
    less, (real, imaginary) = x[0].math("expm1"), exp(x)
    half = (x[1] * 0.5).math("sin")
    cosine_less = half * half * -2.0
    return real.where(x[0].compare("ogt", 40.0), less * x[1].math("cos") + cosine_less), imaginary


def log(x: Pair) -> Pair:
    """Return the logarithm; near the unit circle from ``|x|^2 - 1``, in which nothing is lost."""
    size = amount(x)
    real, imaginary = x[0].math("absf"), x[1].math("absf")
    large, small = real.most(imaginary), real.least(imaginary)
    square_less = (large - 1.0) * (large + 1.0) + small * small
    near = square_less.math("log1p") * 0.5
    is_near = (size - 1.0).math("absf").compare("olt", 0.4)
    ratio = small / large
    far = large.math("log") + (ratio * ratio).math("log1p") * 0.5
    far = large.math("log").where(large.compare("oeq", 0.0), far)
    return _or_infinity(x, near.where(is_near, far)), angle(x)


def log1p(x: Pair) -> Pair:
    """Return the logarithm of 1 + x; the amount of small numbers is kept, that of large ones does not overflow.

    Below -0.5 the sum with 1 is exact where it is small, so that nothing is lost next to the pole at -1.
    """
    is_large = [part.math("absf").compare("ogt", 1024.0) for part in x]
    near = (x[0] * (x[0] + 2.0) + x[1] * x[1]).math("log1p") * 0.5
    real, imaginary = log((x[0] + 1.0, x[1]))
    near = real.where(x[0].compare("olt", -0.5), near)
    return real.where(is_large[0], real.where(is_large[1], near)), imaginary


def sqrt(x: Pair) -> Pair:
    """Return the square root with a positive real part; an infinite imaginary part makes it infinite."""
    power = _RANGES[str(x[0].type)].power
    inside, back = _scaled(x)
    root_of_back = _chosen_factor(back, 2.0**-power, 2.0 ** (-power // 2), 2.0**power, 2.0 ** (power // 2))
    larger = ((amount(inside) + inside[0].math("absf")) * 0.5).math("sqrt")
    smaller = inside[1].math("absf") / (larger + larger)
    smaller = larger.where(larger.compare("oeq", 0.0), smaller)
    is_right = x[0].compare("oge", 0.0)
    parts = (larger.where(is_right, smaller), smaller.where(is_right, larger))
    size = x[1].math("absf")
    real, imaginary = (size.where(size.compare("oeq", math.inf), part * root_of_back) for part in parts)
    return real, imaginary.math("copysign", x[1])


def rsqrt(x: Pair) -> Pair:
    """Return the reciprocal of the square root."""
    root = sqrt(x)
    one = ScalarTerm(root[0].of(1.0), root[0].before)
    return div((one, ScalarTerm(one.of(0.0), one.before)), root)


def sign(x: Pair) -> Pair:
    """Return the number of amount 1 in the same direction; 0 for 0."""
    inside, _ = _scaled(x)
    size = amount(inside)
    is_zero = size.compare("oeq", 0.0)
    return x[0].where(is_zero, inside[0] / size), x[1].where(is_zero, inside[1] / size)


def _hyperbolic(x: ScalarTerm) -> Pair:
    """Return the hyperbolic sine and cosine of a number that is not large."""
    exponential, exponential_minus_one = x.math("exp"), x.math("expm1")
    sine = (exponential_minus_one + exponential_minus_one / exponential) * 0.5
    cosine = (exponential + ScalarTerm(x.of(1.0), x.before) / exponential) * 0.5
    return sine, cosine


def _times_hyperbolic(x: ScalarTerm, of_cosine: ScalarTerm, of_sine: ScalarTerm) -> Pair:
    """Return products with the hyperbolic cosine and sine: half of the exponential, by its root twice, if it is large.

    Args:
        x: The number.
        of_cosine: The factor of the hyperbolic cosine.
        of_sine: The factor of the hyperbolic sine.
    """
    limit = _RANGES[str(x.type)].exponent
    size = x.math("absf")
    sine, cosine = _hyperbolic(x.most(-limit).least(limit))
    half = (size * 0.5).math("exp")
    is_large = size.compare("ogt", limit)
    signed = of_sine * ScalarTerm(x.of(1.0), x.before).math("copysign", x)
    first = (of_cosine * half * 0.5 * half).where(is_large, of_cosine * cosine)
    second = (signed * half * 0.5 * half).where(is_large, of_sine * sine)
    # Zero times infinity is zero here: the other part says where infinity lies.
    zeros = [part.compare("oeq", 0.0) for part in (of_cosine, of_sine)]
    return of_cosine.where(zeros[0], first), signed.where(zeros[1], second)


def sin(x: Pair) -> Pair:
    """Return the sine."""
    return _times_hyperbolic(x[1], x[0].math("sin"), x[0].math("cos"))


def cos(x: Pair) -> Pair:
    """Return the cosine."""
    real, imaginary = _times_hyperbolic(x[1], x[0].math("cos"), x[0].math("sin"))
    return real, -imaginary


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
    real, imaginary = slope * cosine * sine / under, steep / under
    # Far out the angle counts for a part that vanishes only.
    is_far = x[0].math("absf").compare("ogt", limit)
    real = ScalarTerm(x[0].of(1.0), x[0].before).math("copysign", x[0]).where(is_far, real)
    vanishing = (x[0].math("absf") * -2.0).math("exp") * 4.0 * steep / slope
    is_zero = x[0].math("absf").compare("oeq", math.inf)
    vanishing = ScalarTerm(x[1].of(0.0), x[1].before).math("copysign", x[1]).where(is_zero, vanishing)
    return real, vanishing.where(is_far, imaginary)


def power(x: Pair, y: Pair) -> Pair:
    """Return a power: ``exp(y log x)``; of 0 it is 0 for a positive real part, else not a number. To 0 it is 1."""
    size = amount(x)
    real, imaginary = exp(mul(y, log(x)))
    of_zero = size.where(y[0].compare("ogt", 0.0), math.nan)
    is_zero = size.compare("oeq", 0.0)
    real, imaginary = of_zero.where(is_zero, real), of_zero.where(is_zero, imaginary)
    exponent = amount(y)
    is_one = exponent.compare("oeq", 0.0)
    return ScalarTerm(size.of(1.0), size.before).where(is_one, real), exponent.where(is_one, imaginary)


def atan2(y: Pair, x: Pair) -> Pair:
    """Return the angle of complex numbers: ``-i log((x + i y) / sqrt(x^2 + y^2))``, of which only the ratio counts."""
    factor, _ = _factors(_larger(x).most(_larger(y)))
    x, y = _times(x, factor), _times(y, factor)
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
