"""Functions of scalar bodies, and casts like ``f32(x)``."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from functools import partial, reduce
from types import MappingProxyType

from shardy_py.ir.interfaces.emission import ElementBuilder
from shardy_py.plugins.bodies.arithmetic import binary, compare, negate, select
from shardy_py.plugins.bodies.terms import BOOLEAN, BYTES, CASTS, INDEX, Term, alike, mistake, scalar_dtype, with_type

Function = Callable[[ElementBuilder, Sequence[Term]], Term]

_MATH = (
    *("acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "ceil", "copysign", "cos", "cosh", "erf"),
    *("exp", "exp2", "expm1", "floor", "log", "log10", "log1p", "log2", "rsqrt", "sin", "sinh", "sqrt", "tan", "tanh"),
    *("trunc",),
)
_COMPLEX = ("cos", "exp", "expm1", "log", "log1p", "rsqrt", "sin", "sqrt", "tan", "tanh")
_OF_TWO = ("atan2", "copysign")
_WHOLE = ("ceil", "floor", "round", "trunc")
_EXTREMA = {
    "max": ("arith.maximumf", "arith.maxsi", "arith.maxui"),
    "min": ("arith.minimumf", "arith.minsi", "arith.minui"),
}


def _function(name: str, op: str, b: ElementBuilder, terms: Sequence[Term]) -> Term:
    """Return a function of ``math`` of floats, or that of ``complex``."""
    count = 2 if name in _OF_TWO else 1
    if len(terms) != count:
        raise mistake(f"{name} takes {count} arguments, not {len(terms)}")
    first = terms[0]
    if count == 2:
        terms = alike(b, *terms)
        first = terms[0]
    if name in _WHOLE and first.is_integer:
        return first
    if first.is_complex and name in _COMPLEX:
        return Term(first.dtype, b.op(f"complex.{name}", first.scalar))
    if not first.is_float:
        raise mistake(f"{name} takes floats, not {first.dtype or first.number}", f"{name}(f32(x))")
    return Term(first.dtype, b.op(op, *(term.scalar for term in terms)))


def _absolute(b: ElementBuilder, terms: Sequence[Term]) -> Term:
    (x,) = _exactly(1, "abs", terms)
    if x.is_complex:
        part = x.dtype[len("complex<") : -1]
        return Term(part, b.op("complex.abs", x.scalar, dtype=part))
    if x.is_float:
        return Term(x.dtype, b.op("math.absf", x.scalar))
    return x if x.is_unsigned else select(b, compare(b, ast.Lt(), x, Term(number=0)), negate(b, x), x)


def extremum(word: str, b: ElementBuilder, left: Term, right: Term) -> Term:
    """Return the larger or the smaller of two terms; a NaN where one is."""
    left, right = alike(b, left, right)
    if left.is_number:
        return Term(number=(max if word == "max" else min)(left.number.real, right.number.real))
    if left.is_boolean:
        return binary(b, "|" if word == "max" else "&", left, right)
    if left.is_complex:
        raise mistake(f"{left.dtype} has no order", "compare real(x), or abs(x)")
    of_float, signed, unsigned = _EXTREMA[word]
    name = of_float if left.is_float else unsigned if left.is_unsigned else signed
    return Term(left.dtype, b.op(name, left.scalar, right.scalar))


def _extremum_of(word: str, b: ElementBuilder, terms: Sequence[Term]) -> Term:
    return reduce(partial(extremum, word, b), terms)


def _sign(b: ElementBuilder, terms: Sequence[Term]) -> Term:
    (x,) = _exactly(1, "sign", terms)
    zero, one, minus_one = (with_type(b, Term(number=number), x.dtype) for number in (0, 1, 0 if x.is_unsigned else -1))
    below = x if x.is_float else zero
    sign = select(b, compare(b, ast.Lt(), x, zero), minus_one, below)
    return select(b, compare(b, ast.Gt(), x, zero), one, sign)


def _sigmoid(b: ElementBuilder, terms: Sequence[Term]) -> Term:
    (x,) = _exactly(1, "sigmoid", terms)
    below = binary(b, "+", Term(number=1), _function("exp", "math.exp", b, [negate(b, x)]))
    return binary(b, "/", Term(number=1), below)


def _is_nan(b: ElementBuilder, terms: Sequence[Term]) -> Term:
    (x,) = _exactly(1, "isnan", terms)
    return compare(b, ast.NotEq(), x, x)


def _is_finite(b: ElementBuilder, terms: Sequence[Term]) -> Term:
    (x,) = _exactly(1, "isfinite", terms)
    return compare(b, ast.Lt(), _absolute(b, [x]), Term(number=float("inf")))


def _select(b: ElementBuilder, terms: Sequence[Term]) -> Term:
    return select(b, *_exactly(3, "select", terms))


def _part(name: str, b: ElementBuilder, terms: Sequence[Term]) -> Term:
    (x,) = _exactly(1, name, terms)
    if not x.is_complex:
        raise mistake(f"{name} takes complex numbers, not {x.dtype}")
    dtype = x.dtype[len("complex<") : -1]
    return Term(dtype, b.op("complex.re" if name == "real" else "complex.im", x.scalar, dtype=dtype))


def _complex(b: ElementBuilder, terms: Sequence[Term]) -> Term:
    real, imaginary = alike(b, *_exactly(2, "complex", terms))
    dtype = f"complex<{real.dtype}>"
    return Term(dtype, b.op("complex.create", real.scalar, imaginary.scalar, dtype=dtype))


def _fma(b: ElementBuilder, terms: Sequence[Term]) -> Term:
    x, y, z = _exactly(3, "fma", terms)
    x, y = alike(b, x, y)
    return Term(x.dtype, b.op("math.fma", x.scalar, y.scalar, with_type(b, z, x.dtype).scalar))


def _cast(dtype: str, b: ElementBuilder, terms: Sequence[Term]) -> Term:
    (x,) = _exactly(1, dtype, terms)
    return cast(b, x, dtype)


def _exactly(count: int, name: str, terms: Sequence[Term]) -> Sequence[Term]:
    if len(terms) != count:
        raise mistake(f"{name} takes {count} arguments, not {len(terms)}")
    return terms


REDUCERS = ("all", "any", "max", "mean", "min", "prod", "sum")
"""Functions that combine the elements that one element reads; ``max`` and ``min`` where they have one argument."""

OF_READS = ("inside", "pick", *REDUCERS)
"""Functions of operands and where these are read, not of their values alone."""

ELEMENTARY: Mapping[str, Function] = MappingProxyType(
    {
        **{name: partial(_function, name, f"math.{name}") for name in _MATH},
        "round": partial(_function, "round", "math.roundeven"),
        **{name: partial(_cast, name) for name in CASTS},
        **{word: partial(_extremum_of, word) for word in _EXTREMA},
        **{name: partial(_part, name) for name in ("real", "imag")},
        "abs": _absolute,
        "complex": _complex,
        "fma": _fma,
        "isfinite": _is_finite,
        "isnan": _is_nan,
        "select": _select,
        "sigmoid": _sigmoid,
        "sign": _sign,
    }
)
FUNCTIONS = tuple(sorted({*ELEMENTARY, *OF_READS}))


def cast(b: ElementBuilder, term: Term, dtype: str) -> Term:
    """Return a term as one of another type.

    Raises:
        PluginError: its type cannot become the other one.
    """
    if term.is_number or term.dtype == dtype:
        return with_type(b, term, dtype)
    if term.is_complex:
        raise mistake(f"{term.dtype} is not {dtype}", "take real(x) or imag(x)")
    target = Term(dtype, term.value)
    if dtype == BOOLEAN:
        return compare(b, ast.NotEq(), term, Term(number=0))
    if term.dtype == INDEX:
        return _of_index(b, term, target)
    if target.is_float:
        return _to_float(b, term, target)
    wanted = scalar_dtype(dtype)
    if term.is_float:
        name = "arith.fptoui" if target.is_unsigned else "arith.fptosi"
        return Term(dtype, b.op(name, term.scalar, dtype=wanted))
    bits = 1 if term.is_boolean else term.bits
    if bits == target.bits:
        return Term(dtype, term.value)
    is_unsigned = term.is_unsigned or term.is_boolean
    name = "arith.trunci" if bits > target.bits else "arith.extui" if is_unsigned else "arith.extsi"
    return Term(dtype, b.op(name, term.scalar, dtype=wanted))


def _of_index(b: ElementBuilder, term: Term, target: Term) -> Term:
    if target.is_float:
        wide = b.op("arith.index_castui", term.scalar, dtype="i64")
        return Term(target.dtype, b.op("arith.sitofp", wide, dtype=target.dtype))
    return Term(target.dtype, b.op("arith.index_castui", term.scalar, dtype=scalar_dtype(target.dtype)))


def _to_float(b: ElementBuilder, term: Term, target: Term) -> Term:
    if not term.is_float:
        name = "arith.uitofp" if term.is_unsigned or term.is_boolean else "arith.sitofp"
        return Term(target.dtype, b.op(name, term.scalar, dtype=target.dtype))
    types = (term.dtype, target.dtype)
    if (term.is_short and target.is_short) or ("f64" in types and any(dtype in BYTES for dtype in types)):
        return _to_float(b, cast(b, term, "f32"), target)
    name = "arith.extf" if target.bits > term.bits else "arith.truncf"
    return Term(target.dtype, b.op(name, term.scalar, dtype=target.dtype))
