"""Special functions: the complement and the inverse of erf, the gamma function and its kin, a Bessel function.

The formulas are those that XLA computes with, so that results agree with its own to the last few bits. Types of fewer
than 32 bits are computed in ``f32``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from shardy_dialects.stablehlo.bodies import element_type, width
from shardy_dialects.stablehlo.elementwise import special_tables as tables
from shardy_dialects.stablehlo.elementwise.reals import Condition, Real, chebyshev, polynomial
from shardy_py.ir.graph.program import Op
from shardy_py.plugins import ElementBuilder, Scalar
from shardy_py.support.element_types import mlir_element_bits

_EXACT = ("f32", "f64")


def special(name: str, b: ElementBuilder, op: Op) -> Scalar:
    """Compute a special function by its name without a dialect."""
    scalars = [b.operand(number) for number in range(len(op.operands))]
    dtype = scalars[0].dtype
    if dtype not in _EXACT:
        scalars = [b.op("arith.extf", scalar, dtype="f32") for scalar in scalars]
    function = _FUNCTIONS[name]
    result = function(*(Real(b, scalar) for scalar in scalars)).scalar
    return result if dtype in _EXACT else b.op("arith.truncf", result, dtype=dtype)


def _is_double(x: Real) -> bool:
    return x.scalar.dtype == "f64"


def _erfc(x: Real) -> Real:
    """Return ``1 - erf(x)``, which does not cancel for large numbers."""
    square, magnitude = x * x, abs(x)
    exponential = (-square).apply("math.exp")
    if _is_double(x):
        near = 1 - x * _quotient(square, tables.ERF_F64)
        middle = exponential * polynomial(magnitude, tables.ERFC_F64_MIDDLE[0])
        tail = exponential * polynomial(magnitude, tables.ERFC_F64_TAIL[0])
        middle = middle / polynomial(magnitude, tables.ERFC_F64_MIDDLE[1])
        tail = tail / polynomial(magnitude, tables.ERFC_F64_TAIL[1])
        far = (magnitude < 8).choose(middle, tail)
    else:
        near = 1 - x * polynomial(square, tables.ERF_F32)
        inverse = 1 / square
        series = [polynomial(inverse, table) for table in (tables.ERFC_F32_MIDDLE, tables.ERFC_F32_TAIL)]
        far = exponential * (1 / magnitude) * (magnitude < 2).choose(*series)
    # Below this number the exponential has less than full precision.
    least = -709.782712893384 if _is_double(x) else -88.7228394
    far = (-square < least).choose(x.like(0), far)
    return (magnitude < 1).choose(near, (x < 0).choose(2 - far, far))


def _quotient(x: Real, table: tuple[tuple[float, ...], tuple[float, ...]]) -> Real:
    return polynomial(x, table[0]) / polynomial(x, table[1])


def _erf_inv(x: Real) -> Real:
    """Return the number whose erf is given: a polynomial of the logarithm of ``1 - x * x``, or of its root."""
    w = -(x * -x).apply("math.log1p")
    root = w.apply("math.sqrt")
    if _is_double(x):
        tail = (w < 16).choose(
            polynomial(root - 3.25, tables.ERF_INV_F64_MIDDLE), polynomial(root - 5, tables.ERF_INV_F64_TAIL)
        )
        factor = (w < 6.25).choose(polynomial(w - 3.125, tables.ERF_INV_F64_CENTRAL), tail)
    else:
        tail = polynomial(root - 3, tables.ERF_INV_F32_TAIL)
        factor = (w < 5).choose(polynomial(w - 2.5, tables.ERF_INV_F32_CENTRAL), tail)
    return abs(x).compare("oeq", 1).choose(x * math.inf, factor * x)


_G = 7.5
_LOG_G = math.log(_G)


def _reflected(x: Real) -> tuple[Condition, Real]:
    """Return whether a number is below 1/2, and the number of Lanczos' series: ``x - 1``, or ``-x`` below 1/2."""
    is_below = x < 0.5
    return is_below, is_below.choose(-x, x - 1)


def _lgamma(x: Real) -> Real:
    """Return the logarithm of the gamma function's magnitude, by Lanczos' series and Euler's reflection."""
    is_below, z = _reflected(x)
    series = x.like(tables.LANCZOS[0])
    for number, coefficient in enumerate(tables.LANCZOS[1:], 1):
        series = series + coefficient / (z + number)
    log_t = (z / _G).apply("math.log1p") + _LOG_G
    above = ((z + 0.5) - (z + _G) / log_t) * log_t + math.log(2 * math.pi) / 2 + series.apply("math.log")
    fraction = abs(x) - abs(x).apply("math.floor")
    fraction = fraction.compare("ogt", 0.5).choose(1 - fraction, fraction)
    log_sine = (fraction * math.pi).apply("math.sin").apply("math.log")
    is_finite = abs(log_sine).compare("one", math.inf)
    below = is_finite.choose(math.log(math.pi) - log_sine - above, -log_sine)
    result = is_below.choose(below, above)
    return abs(x).compare("oeq", math.inf).choose(x.like(math.inf), result)


def _digamma(x: Real) -> Real:
    """Return the derivative of the logarithm of the gamma function."""
    is_below, z = _reflected(x)
    series, derivative = x.like(tables.LANCZOS[0]), x.like(0)
    for number, coefficient in enumerate(tables.LANCZOS[1:], 1):
        shifted = z + number
        derivative = derivative - coefficient / (shifted * shifted)
        series = series + coefficient / shifted
    log_t = (z / _G).apply("math.log1p") + _LOG_G
    above = log_t + derivative / series - 7 / (z + _G)
    angle = (x + abs((x + 0.5).apply("math.floor"))) * math.pi
    cotangent = angle.apply("math.cos") * math.pi / angle.apply("math.sin")
    result = is_below.choose(above - cotangent, above)
    return ((x <= 0) & x.is_whole).choose(x.like(math.nan), result)


def _zeta(x: Real, q: Real) -> Real:
    """Return Hurwitz' zeta function: ten terms, and the rest by the formula of Euler and Maclaurin."""
    a, total = q, q.apply("math.powf", -x)
    term = total
    for number in range(10):
        a = a + 1
        term = a.apply("math.powf", -x)
        total = total + term if number < 9 else total
    rest = total + term * a / (x - 1)
    inverse = 1 / (a * a)
    series = (x + 22) * (x + 21) * (inverse * tables.EULER_MACLAURIN[0])
    for number, coefficient in enumerate(tables.EULER_MACLAURIN[1:-1], 1):
        shift = 22 - 2 * number
        series = (x + shift) * (x + (shift - 1)) * (inverse * (series + coefficient))
    rest = rest + term * (x / a * (series + tables.EULER_MACLAURIN[-1]) + 0.5)
    least = 5e-324 if _is_double(x) else 1.4013e-45
    result = (abs(term) < abs(total) * least).choose(total, rest)
    result = (x < 1).choose(x.like(math.nan), result)
    is_below = q <= 0
    result = (is_below & x.compare("une", x.apply("math.floor"))).choose(x.like(math.nan), result)
    is_even = x.is_whole & x.apply("arith.remf", 2).compare("oeq", 0)
    pole = is_even.choose(x.like(math.inf), math.nan)
    result = (is_below & q.is_whole).choose(pole, result)
    return x.compare("oeq", 1).choose(x.like(math.inf), result)


def _polygamma(order: Real, x: Real) -> Real:
    """Return a derivative of the digamma function: by the zeta function, with the sign of its order."""
    sign = order.apply("arith.remf", 2) * 2 - 1
    following = order + 1
    result = sign * _lgamma(following).apply("math.exp") * _zeta(following, x)
    result = order.compare("oeq", 0).choose(_digamma(x), result)
    is_wrong = (order < 0) | order.compare("une", order.apply("math.floor"))
    return is_wrong.choose(x.like(math.nan), result)


def _bessel_i1e(x: Real) -> Real:
    """Return the modified Bessel function of order 1, scaled by ``exp(-|x|)``."""
    magnitude = abs(x)
    small: Sequence[float] = tables.BESSEL_I1E_SMALL
    large: Sequence[float] = tables.BESSEL_I1E_LARGE
    if not _is_double(x):
        terms = tables.BESSEL_F32_TERMS
        small, large = small[-terms[0] :], large[-terms[1] :]
    near = magnitude * chebyshev(magnitude * 0.5 - 2, small)
    far = chebyshev(32 / magnitude - 2, large) / magnitude.apply("math.sqrt")
    result = (magnitude <= 8).choose(near, far)
    is_zero = x.compare("oeq", 0)
    return is_zero.choose(x, (x < 0).choose(-result, result))


_FUNCTIONS: Mapping[str, Callable[..., Real]] = {
    "bessel_i1e": _bessel_i1e,
    "digamma": _digamma,
    "erf_inv": _erf_inv,
    "erfc": _erfc,
    "lgamma": _lgamma,
    "polygamma": _polygamma,
    "zeta": _zeta,
}


def next_after(b: ElementBuilder, op: Op) -> Scalar:
    """Return the number next to the first one on the way to the second: one more or less as an integer of its bits."""
    x, y = b.operand(0), b.operand(1)
    bits = mlir_element_bits(element_type(op.operands[0])) or 0
    dtype = f"i{bits}"
    x_bits, y_bits = (b.op("arith.bitcast", value, dtype=dtype) for value in (x, y))
    sign, rest = b.constant(-(1 << (bits - 1)), dtype), b.constant((1 << (bits - 1)) - 1, dtype)
    zero, one, minus_one = (b.constant(number, dtype) for number in (0, 1, -1))

    def compare(predicate: str, left: Scalar, right: Scalar) -> Scalar:
        return b.op("arith.cmpi", left, right, dtype="i1", predicate=predicate)

    def choose(condition: Scalar, then: Scalar, otherwise: Scalar) -> Scalar:
        return b.op("arith.select", condition, then, otherwise, dtype=then.dtype)

    x_rest, y_rest = b.op("arith.andi", x_bits, rest), b.op("arith.andi", y_bits, rest)
    x_sign, y_sign = b.op("arith.andi", x_bits, sign), b.op("arith.andi", y_bits, sign)
    from_zero = choose(compare("eq", y_rest, zero), y_bits, b.op("arith.ori", y_sign, one))
    is_inward = b.op("arith.ori", compare("sgt", x_rest, y_rest), compare("ne", x_sign, y_sign))
    moved = b.op("arith.addi", x_bits, choose(is_inward, minus_one, one))
    moved = choose(compare("eq", x_rest, zero), from_zero, moved)
    is_equal = b.op("arith.cmpf", x, y, dtype="i1", predicate="oeq")
    result = b.op("arith.bitcast", choose(is_equal, y_bits, moved), dtype=x.dtype)
    is_nan = b.op("arith.cmpf", x, y, dtype="i1", predicate="uno")
    return choose(is_nan, b.constant(math.nan, x.dtype), result)


def multiply_high(b: ElementBuilder, op: Op) -> Scalar:
    """Return the upper half of the product of two integers; of 64 bits by parts of 32."""
    x, y = b.operand(0), b.operand(1)
    bits, is_unsigned = width(op.operands[0]), element_type(op.operands[0]).startswith("ui")
    if bits < 64:
        extend = "arith.extui" if is_unsigned else "arith.extsi"
        product = b.op("arith.muli", *(b.op(extend, value, dtype=f"i{2 * bits}") for value in (x, y)))
        shifted = b.op("arith.shrui", product, b.constant(bits, product.dtype))
        return b.op("arith.trunci", shifted, dtype=x.dtype)
    half, mask = b.constant(32, "i64"), b.constant((1 << 32) - 1, "i64")
    x_high, y_high = (b.op("arith.shrui", value, half) for value in (x, y))
    x_low, y_low = (b.op("arith.andi", value, mask) for value in (x, y))
    carried = b.op("arith.shrui", b.op("arith.muli", x_low, y_low), half)
    first = b.op("arith.addi", b.op("arith.muli", x_high, y_low), carried)
    second = b.op("arith.addi", b.op("arith.muli", x_low, y_high), b.op("arith.andi", first, mask))
    product = b.op("arith.addi", b.op("arith.muli", x_high, y_high), b.op("arith.shrui", first, half))
    product = b.op("arith.addi", product, b.op("arith.shrui", second, half))
    if is_unsigned:
        return product
    # A negative number is 2**64 too large as one without a sign.
    zero = b.constant(0, "i64")
    for number, other in ((x, y), (y, x)):
        is_negative = b.op("arith.cmpi", number, zero, dtype="i1", predicate="slt")
        product = b.op("arith.subi", product, b.op("arith.select", is_negative, other, zero, dtype="i64"))
    return product


def conjugate(b: ElementBuilder, op: Op) -> Scalar:
    """Change the sign of the imaginary part."""
    x = b.operand(0)
    if not x.dtype.startswith("complex"):
        return x
    part = x.dtype[len("complex<") : -1]
    imaginary = b.op("arith.negf", b.op("complex.im", x, dtype=part))
    return b.op("complex.create", b.op("complex.re", x, dtype=part), imaginary, dtype=x.dtype)
