"""Conversions of small floats by integers, functions of 16-bit floats in ``f32``, and ``f32`` by rational functions."""

from __future__ import annotations

import math
from typing import Any

from xdsl.dialects import arith, builtin
from xdsl.dialects import math as math_dialect
from xdsl.dialects.builtin import FloatNanEncoding, FloatNonfiniteBehavior, FloatSemantics
from xdsl.dialects.utils.fast_math import FastMathFlag
from xdsl.ir import Attribute, Operation, SSAValue

from shardy_py.kernels.dialect.types import small_float
from shardy_py.kernels.elemental.scalars import make_op
from shardy_py.kernels.passes.base import KernelContext, insert_before, replace, walk_ops
from shardy_py.kernels.passes.op_maker import OpMaker
from shardy_py.kernels.passes.scalar_terms import ScalarTerm
from shardy_py.values import frozen

_SHORT = (builtin.BFloat16Type, builtin.Float16Type)
# What only touches the sign needs no wider type.
_OF_BITS = ("math.absf", "math.copysign")
APPROXIMATE = arith.FastMathFlagsAttr([FastMathFlag.APPROX_FUNC])


@frozen
class ConvertFloat:
    """Compute functions of floats of 16 bits in ``f32``; powers and logarithms of base two approximate there.

    Floats of 8 and 4 bits are converted by integers.
    """

    name: str = "convert-float"

    def run(self, module: builtin.ModuleOp, context: KernelContext) -> None:
        """Change the module in place."""
        for op in walk_ops(module.body):
            if isinstance(op, arith.ExtFOp | arith.TruncFOp) and convert_small_float(op):
                continue
            is_function = op.name.startswith("math.") and op.name not in _OF_BITS
            if (is_function or op.name == "arith.remf") and isinstance(op.results[0].type, _SHORT):
                _widen(op)


def _widen(op: Operation) -> None:
    values = [ScalarTerm(insert_before(op, arith.ExtFOp(value, builtin.f32)), op) for value in op.operands]
    first = values[0]
    if isinstance(op, math_dialect.ExpOp):
        result = _approximate(op, "math.exp2", (first * math.log2(math.e)).value)
    elif isinstance(op, math_dialect.LogOp):
        result = (ScalarTerm(_approximate(op, "math.log2", first.value), op) * math.log(2)).value
    else:
        wide = make_op(op.name, [value.value for value in values], builtin.f32, {})
        result = insert_before(op, wide)
    type_: Any = op.results[0].type
    replace(op, [insert_before(op, arith.TruncFOp(result, type_))])


def _approximate(op: Operation, name: str, value: SSAValue) -> SSAValue:
    approximate_op = make_op(name, [value], builtin.f32, {})
    approximate_op.properties["fastmath"] = APPROXIMATE
    return insert_before(op, approximate_op)


_WIDE = {"f32": (8, 23), "f64": (11, 52)}
"""Bits of exponent and mantissa of the types that are rounded by integers."""


def convert_small_float(op: arith.ExtFOp | arith.TruncFOp) -> bool:
    """Replace a conversion from or to a float of 8 or 4 bits by ops on integers; return whether it was one."""
    source, target = small_float(op.input.type), small_float(op.result.type)
    maker = _Maker(op)
    if target is not None:
        converted = maker.rounded(op.input, target.SEMANTICS, op.result.type)
    elif source is not None:
        converted = maker.converted(maker.widened(op.input, source.SEMANTICS), op.result.type)
    else:
        return False
    replace(op, [converted])
    return True


class _Maker(OpMaker):
    """Ops that convert a float by integers."""

    def converted(self, value: SSAValue, type_: Attribute) -> SSAValue:
        """Return an ``f32`` in another type."""
        if value.type == type_:
            return value
        return self.op("arith.extf" if isinstance(type_, builtin.Float64Type) else "arith.truncf", value, dtype=type_)

    def widened(self, value: SSAValue, format_: FloatSemantics) -> SSAValue:
        """Return a short float as ``f32``; its exponent is shifted by a product, which also takes subnormals."""
        mantissa, width = 23 - format_.mantissa_bits, format_.bitwidth
        bits = self.op("arith.bitcast", value, dtype=builtin.IntegerType(width))
        bits = self.op("arith.extui", bits, dtype=builtin.i32)
        if not format_.has_sign:
            return self._power(bits)
        negative = 1 << (width - 1)
        amount = self.integer("arith.andi", bits, negative - 1)
        sign = self.integer("arith.shli", self.integer("arith.andi", bits, negative), 32 - width)
        shifted = self.integer("arith.shli", amount, mantissa)
        scale = 2.0 ** (127 - format_.exponent_bias)
        small = self.op("arith.bitcast", shifted, dtype=builtin.f32)
        number = self.op("arith.bitcast", self.op("arith.mulf", small, self.number(scale, small)), dtype=builtin.i32)
        if format_.nonfinite is FloatNonfiniteBehavior.IEEE:
            special = self.integer("arith.ori", shifted, 0x7F800000)
            is_special = self.compare("uge", amount, format_.max_exponent << format_.mantissa_bits)
            number = self.select(is_special, special, number)
        elif format_.nonfinite is FloatNonfiniteBehavior.NAN_ONLY:
            has_sign = format_.nan_encoding is FloatNanEncoding.NEGATIVE_ZERO
            is_nan = self.compare("eq", bits if has_sign else amount, 0x80 if has_sign else 0x7F)
            number = self.select(is_nan, 0x7FC00000, number)
        return self.op("arith.bitcast", self.op("arith.ori", number, sign), dtype=builtin.f32)

    def _power(self, bits: SSAValue) -> SSAValue:
        """Return a power of two as ``f32`` from its exponent, the least one of which is a subnormal."""
        number = self.integer("arith.shli", bits, 23)
        number = self.select(self.compare("eq", bits, 0), 0x00400000, number)
        number = self.select(self.compare("eq", bits, 0xFF), 0x7FC00000, number)
        return self.op("arith.bitcast", number, dtype=builtin.f32)

    def rounded(self, value: SSAValue, format_: FloatSemantics, type_: Attribute) -> SSAValue:
        """Return a float rounded to a short one: to the nearest, halves to even; the largest are infinite or NaNs."""
        if str(value.type) not in _WIDE:
            value = self.op("arith.extf", value, dtype=builtin.f32)
        exponent, mantissa = _WIDE[str(value.type)]
        width, short = 1 + exponent + mantissa, format_.bitwidth
        bits = self.op("arith.bitcast", value, dtype=builtin.IntegerType(width))
        if not format_.has_sign:
            code = self._exponent(bits, exponent, mantissa)
            return self.op("arith.bitcast", self.op("arith.trunci", code, dtype=builtin.i8), dtype=type_)
        amount = self.integer("arith.andi", bits, (1 << (width - 1)) - 1)
        code = self._code(amount, value, format_, exponent, mantissa)
        code = self._special(amount, code, format_, ((1 << exponent) - 1) << mantissa)
        sign = self.integer("arith.andi", self.integer("arith.shrui", bits, width - short), 1 << (short - 1))
        encoded = self.op("arith.ori", code, sign)
        if format_.nan_encoding is FloatNanEncoding.NEGATIVE_ZERO:
            encoded = self.select(self.compare("eq", code, 0), code, encoded)
        if format_.nonfinite is FloatNonfiniteBehavior.FINITE_ONLY:
            # There is no NaN: XLA gives the zero with a sign.
            is_nan = self.compare("ugt", amount, ((1 << exponent) - 1) << mantissa)
            encoded = self.select(is_nan, 1 << (short - 1), encoded)
        return self.op("arith.bitcast", self.op("arith.trunci", encoded, dtype=builtin.IntegerType(short)), dtype=type_)

    def _exponent(self, bits: SSAValue, exponent: int, mantissa: int) -> SSAValue:
        """Return the exponent of the nearest power of two, halves up; that of a NaN for what is not positive.

        As in XLA, what is between the two least powers is the larger one, and what is below them the least one for
        ``f32`` and a NaN for ``f64``.
        """
        bias = (1 << (exponent - 1)) - 1
        near = self.integer("arith.shrui", self.integer("arith.addi", bits, 1 << (mantissa - 1)), mantissa)
        code = self.integer("arith.subi", near, bias - 127)
        has_subnormals = bias == 127
        least = 1 << (mantissa - 1) if has_subnormals else (bias - 127) << mantissa
        code = self.select(self.compare("ult", bits, (bias - 126) << mantissa), 1, code)
        code = self.select(self.compare("ule", bits, least), 0, code)
        code = self.select(self.compare("ugt", code, 0xFE), 0xFF, code)
        return self.select(self.compare("slt", bits, 1 if has_subnormals else least), 0xFF, code)

    def _code(
        self, amount: SSAValue, value: SSAValue, format_: FloatSemantics, exponent: int, mantissa: int
    ) -> SSAValue:
        """Return the bits of a finite number without its sign."""
        bias, dropped = (1 << (exponent - 1)) - 1, mantissa - format_.mantissa_bits
        last = self.integer("arith.andi", self.integer("arith.shrui", amount, dropped), 1)
        near = self.op("arith.addi", self.integer("arith.addi", amount, (1 << (dropped - 1)) - 1), last)
        rebased = (bias - format_.exponent_bias) << format_.mantissa_bits
        normal = self.integer("arith.subi", self.integer("arith.shrui", near, dropped), rebased)
        # The sum with a number whose last place is the smallest subnormal has the code in its last bits.
        scale = 2.0 ** (mantissa + 1 - format_.exponent_bias - format_.mantissa_bits)
        magnitude = self.op("arith.bitcast", amount, dtype=value.type)
        total = self.op("arith.addf", magnitude, self.number(scale, value))
        offset = self.op("arith.bitcast", self.number(scale, value), dtype=amount.type)
        subnormal = self.op("arith.subi", self.op("arith.bitcast", total, dtype=amount.type), offset)
        least = (bias - format_.exponent_bias + 1) << mantissa
        return self.select(self.compare("ult", amount, least), subnormal, normal)

    def _special(self, amount: SSAValue, code: SSAValue, format_: FloatSemantics, infinity: int) -> SSAValue:
        """Return the bits of a number, of an infinity or of a NaN."""
        top = format_.max_exponent << format_.mantissa_bits
        if format_.nonfinite is FloatNonfiniteBehavior.IEEE:
            code = self.select(self.compare("ugt", code, top - 1), top, code)
            return self.select(self.compare("ugt", amount, infinity), top | 1 << (format_.mantissa_bits - 1), code)
        if format_.nonfinite is FloatNonfiniteBehavior.FINITE_ONLY:
            most = (1 << (format_.bitwidth - 1)) - 1
            return self.select(self.compare("ugt", code, most), most, code)
        if format_.nan_encoding is FloatNanEncoding.NEGATIVE_ZERO:
            return self.select(self.compare("ugt", code, 0x7F), 0x80, code)
        return self.select(self.compare("ugt", code, 0x7E), 0x7F, code)


# The rational functions of XLA's EmitFastTanh and of its error function, which are Eigen's: coefficients of even
# powers, the highest one first.
_TANH_LIMIT = 7.90531110763549805
_TANH_OVER = (
    *(-2.76076847742355e-16, 2.00018790482477e-13, -8.60467152213735e-11, 5.12229709037114e-08),
    *(1.48572235717979e-05, 6.37261928875436e-04, 4.89352455891786e-03),
)
_TANH_UNDER = (1.19825839466702e-06, 1.18534705686654e-04, 2.26843463243900e-03, 4.89352518554385e-03)
_TANH_IS_LINEAR, _TANH_IS_ONE = 0.0004, 20.0
_ERF_LIMIT = 3.832506856900711
_ERF_OVER = (
    *(0.00022905065861350646, 0.0034082910107109506, 0.050955695062380861, 0.18520832239976145),
    1.128379143519084,
)
_ERF_UNDER = (
    *(-1.1791602954361697e-7, 0.000023547966471313185, 0.0010179625278914885, 0.014070470171167667),
    *(0.11098505178285362, 0.49746925110067538, 1.0),
)


@frozen
class ExpandFloat:
    """Compute ``tanh`` and ``erf`` of ``f32`` by sums, products and a division."""

    name: str = "expand-float"

    def run(self, module: builtin.ModuleOp, context: KernelContext) -> None:
        """Change the module in place."""
        for op in walk_ops(module.body):
            if not op.results or op.results[0].type != builtin.f32:
                continue
            if isinstance(op, math_dialect.TanhOp):
                replace(op, [tanh(ScalarTerm(op.operand, op)).value])
            elif isinstance(op, math_dialect.ErfOp):
                replace(op, [erf(ScalarTerm(op.operand, op)).value])


def _clamped(x: ScalarTerm, limit: float) -> ScalarTerm:
    return x.most(-limit).least(limit)


def tanh(x: ScalarTerm) -> ScalarTerm:
    """Return the hyperbolic tangent: the number itself where it is small, 1 or -1 where it is large."""
    near = _clamped(x, _TANH_LIMIT)
    square = near * near
    quotient = near * square.polynomial(_TANH_OVER) / square.polynomial(_TANH_UNDER)
    amount = x.math("absf")
    quotient = x.where(amount.compare("olt", _TANH_IS_LINEAR), quotient)
    limit = ScalarTerm(x.of(-1.0), x.before).where(x.compare("olt", 0.0), 1.0)
    return limit.where(amount.compare("ogt", _TANH_IS_ONE), quotient)


def erf(x: ScalarTerm) -> ScalarTerm:
    """Return the error function."""
    near = _clamped(x, _ERF_LIMIT)
    square = near * near
    return near * square.polynomial(_ERF_OVER) / square.polynomial(_ERF_UNDER)
