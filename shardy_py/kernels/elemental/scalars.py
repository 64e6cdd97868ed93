"""Ops of ``arith``, ``math`` and ``complex`` by their names, and expansions of those that no processor has."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache
from types import MappingProxyType
from typing import Any

from xdsl.dialects import arith, builtin
from xdsl.dialects import complex as complex_dialect
from xdsl.dialects import math as math_dialect
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.test_value import create_ssa_value

from shardy_py.errors import Diagnostic, UnsupportedError, did_you_mean
from shardy_py.kernels.dialect.arith_and_llvm import ARITH
from shardy_py.kernels.dialect.types import is_small_float, scalar_type, small_float
from shardy_py.plugins import ElementBuilder, Scalar
from shardy_py.values import frozen

INTEGER_PREDICATES = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")
FLOAT_PREDICATES = (
    *("false", "oeq", "ogt", "oge", "olt", "ole", "one", "ord"),
    *("ueq", "ugt", "uge", "ult", "ule", "une", "uno", "true"),
)
COMPARISONS = ("arith.cmpf", "arith.cmpi")
_WITHOUT_MEANING = ("arith.addui_extended", "arith.mulsi_extended", "arith.mului_extended", "math.fpowi")
"""Ops with several results, and powers of floats with integers, which nothing runs."""
GUARD = "xla.guard_ub"
"""The mark of a quotient, a remainder or a shift that has a result everywhere."""
_NO_FLAGS = arith.FastMathFlagsAttr("none")


@frozen(eq=False)
class ScalarValue:
    """A value of a kernel, as an op's body sees it."""

    value: SSAValue

    @property
    def dtype(self) -> str:
        """Its type in MLIR's notation."""
        return str(self.value.type)


@cache
def _classes() -> dict[str, type[Operation]]:
    dialects = (ARITH, math_dialect.Math, complex_dialect.Complex)
    classes = {op.name: op for dialect in dialects for op in dialect.operations}
    return {name: class_ for name, class_ in classes.items() if name not in _WITHOUT_MEANING}


@lru_cache(maxsize=4096)
def problem_of(name: str, operands: tuple[Attribute, ...], result: Attribute, predicate: str) -> str:
    """Return why there is no such op, or "".

    Args:
        name: Its full name.
        operands: The types of its operands.
        result: The type of its result.
        predicate: The predicate of a comparison, or "".
    """
    known = _predicates(name) if name in COMPARISONS else ()
    if known and predicate not in known:
        return f"{name} has no predicate {predicate!r}; there are {', '.join(known)}"
    values: list[SSAValue] = [create_ssa_value(type_) for type_ in operands]
    try:
        make_op(name, values, result, {"predicate": predicate} if predicate else {}).verify(verify_nested_ops=False)
    except VerifyException as error:
        reason = str(error).splitlines()[0].rstrip(":")
        return f"{name} does not take ({', '.join(map(str, operands))}) -> {result}: {reason}"
    return ""


def _predicates(name: str) -> tuple[str, ...]:
    return FLOAT_PREDICATES if name == "arith.cmpf" else INTEGER_PREDICATES


def make_op(name: str, operands: list[SSAValue], result: Attribute, attributes: dict[str, Any]) -> Operation:
    """Return an op with one result.

    Args:
        name: Its full name.
        operands: Its operands.
        result: The type of the result.
        attributes: ``predicate`` for comparisons, by its name.

    Raises:
        UnsupportedError: there is no such op.
    """
    class_ = _classes().get(name)
    if class_ is None:
        hint = did_you_mean(name, _classes(), otherwise="the ops of arith, math and complex are known")
        raise UnsupportedError(Diagnostic("unknown-scalar-op", f"kernels have no op {name!r}", hint=hint))
    properties: dict[str, Attribute] = {}
    known = class_.get_irdl_definition().properties  # type: ignore[attr-defined]
    if "fastmath" in known:
        properties["fastmath"] = _NO_FLAGS
    if "overflowFlags" in known:
        properties["overflowFlags"] = arith.IntegerOverflowAttr("none")
    if "predicate" in attributes:
        number = _predicates(name).index(attributes["predicate"])
        properties["predicate"] = builtin.IntegerAttr(number, builtin.i64)
    return class_.create(operands=operands, result_types=[result], properties=properties)


def exponent_bits(width: int) -> int:
    """Return how many bits of an exponent count in a power of integers, as in XLA: at most six.

    Args:
        width: The bits of the integers.
    """
    return min(width, 6)


def make_constant(value: complex, dtype: str) -> Operation:
    """Return a constant, rounded to its type."""
    type_ = scalar_type(dtype)
    if isinstance(type_, builtin.ComplexType):
        part: Any = type_.element_type
        both = [builtin.FloatAttr(_rounded(item, part), part) for item in (value.real, value.imag)]
        return complex_dialect.ConstantOp(builtin.ArrayAttr(both), type_)
    if isinstance(type_, builtin.IntegerType | builtin.IndexType):
        return arith.ConstantOp(builtin.IntegerAttr(_wrapped(int(value.real), type_), type_))
    float_: Any = type_
    return arith.ConstantOp(builtin.FloatAttr(_rounded(float(value.real), type_), float_))


def _wrapped(value: int, type_: builtin.IntegerType | builtin.IndexType) -> int:
    """Return an integer as one with a sign, in the range of its type."""
    if isinstance(type_, builtin.IndexType):
        return value
    width = type_.width.data
    value &= (1 << width) - 1
    return value - (1 << width) if width > 1 and value >> (width - 1) else value


def _rounded(value: float, type_: Attribute) -> float:
    """Return a number as its type holds it: to the nearest, halves to even."""
    if not math.isfinite(value) or isinstance(type_, builtin.Float64Type):
        return value
    if (small := small_float(type_)) is not None:
        is_unsigned = not small.SEMANTICS.has_sign
        return math.nan if is_unsigned and value <= 0 else small.decode_bits(small.encode_bits(value))
    import ml_dtypes
    import numpy

    kinds: dict[type[Attribute], Any] = {
        builtin.BFloat16Type: ml_dtypes.bfloat16,
        builtin.Float16Type: numpy.float16,
        builtin.Float32Type: numpy.float32,
    }
    with numpy.errstate(over="ignore"):
        return float(kinds[type(type_)](value))


def floor_division(b: ElementBuilder, left: Scalar, right: Scalar) -> Scalar:
    """Divide integers with a sign, rounding down."""
    quotient, rest = b.op("arith.divsi", left, right), b.op("arith.remsi", left, right)
    wrong = b.op("arith.andi", _is_left(b, rest), _signs_differ(b, rest, right))
    return _moved(b, "arith.subi", quotient, wrong)


def ceiling_division(b: ElementBuilder, left: Scalar, right: Scalar) -> Scalar:
    """Divide integers with a sign, rounding up."""
    quotient, rest = b.op("arith.divsi", left, right), b.op("arith.remsi", left, right)
    same = b.op("arith.xori", _signs_differ(b, rest, right), b.constant(1, "i1"))
    return _moved(b, "arith.addi", quotient, b.op("arith.andi", _is_left(b, rest), same))


def unsigned_ceiling_division(b: ElementBuilder, left: Scalar, right: Scalar) -> Scalar:
    """Divide integers without a sign, rounding up."""
    quotient, rest = b.op("arith.divui", left, right), b.op("arith.remui", left, right)
    return _moved(b, "arith.addi", quotient, _is_left(b, rest))


def _moved(b: ElementBuilder, name: str, quotient: Scalar, wrong: Scalar) -> Scalar:
    """Return a quotient, moved by one where it is wrong."""
    moved = b.op(name, quotient, b.constant(1, quotient.dtype))
    return b.op("arith.select", wrong, moved, quotient, dtype=quotient.dtype)


def _is_left(b: ElementBuilder, rest: Scalar) -> Scalar:
    return b.op("arith.cmpi", rest, b.constant(0, rest.dtype), dtype="i1", predicate="ne")


def _signs_differ(b: ElementBuilder, rest: Scalar, right: Scalar) -> Scalar:
    signs = b.op("arith.xori", rest, right)
    return b.op("arith.cmpi", signs, b.constant(0, signs.dtype), dtype="i1", predicate="slt")


EXPANSIONS: Mapping[str, Callable[[ElementBuilder, Scalar, Scalar], Scalar]] = MappingProxyType(
    {
        "arith.ceildivsi": ceiling_division,
        "arith.ceildivui": unsigned_ceiling_division,
        "arith.floordivsi": floor_division,
    }
)


_OF_BITS = ("arith.bitcast", "arith.extf", "arith.select", "arith.truncf")
"""Ops that move the bits of a float, or convert them."""


def is_widened(name: str, operands: Sequence[Scalar], dtype: str | None) -> bool:
    """Return whether an op on floats of 8 or 4 bits is one on ``f32``."""
    types = (*(operand.dtype for operand in operands), dtype or "")
    return name not in _OF_BITS and any(map(is_small_float, types))


def widened(
    b: ElementBuilder, name: str, operands: Sequence[Scalar], dtype: str | None, attributes: Mapping[str, Any]
) -> Scalar:
    """Return the result of an op that computes with ``f32``."""
    small = dtype or operands[0].dtype
    wide = [b.op("arith.extf", item, dtype="f32") if is_small_float(item.dtype) else item for item in operands]
    if name == "arith.cmpf" or not is_small_float(small):
        return b.op(name, *wide, dtype=dtype, **attributes)
    return b.op("arith.truncf", b.op(name, *wide, dtype="f32", **attributes), dtype=small)
