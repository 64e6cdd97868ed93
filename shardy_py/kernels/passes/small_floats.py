"""Conversions from and to floats of 8 bits, by integers: the same bits on every processor."""

from __future__ import annotations

from xdsl.dialects import arith, builtin
from xdsl.dialects.builtin import FloatNanEncoding, FloatNonfiniteBehavior, FloatSemantics
from xdsl.ir import Attribute, Operation, SSAValue

from shardy_py.kernels.dialect.types import small_float
from shardy_py.kernels.elemental.scalars import make_constant, make_op
from shardy_py.kernels.passes.base import insert_before, replace
from shardy_py.values import frozen

_WIDE = {"f32": (8, 23), "f64": (11, 52)}
"""Bits of exponent and mantissa of the types that are rounded by integers."""


def convert_small_float(op: arith.ExtFOp | arith.TruncFOp) -> bool:
    """Replace a conversion from or to a float of 8 bits by ops on integers; return whether it was one."""
    source, target = small_float(op.input.type), small_float(op.result.type)
    maker = _Maker(op)
    if target is not None:
        found = maker.rounded(op.input, target.SEMANTICS, op.result.type)
    elif source is not None:
        found = maker.converted(maker.widened(op.input, source.SEMANTICS), op.result.type)
    else:
        return False
    replace(op, [found])
    return True


@frozen
class _Maker:
    """Ops before one that they replace.

    Args:
        before: The op that is replaced.
    """

    before: Operation

    def op(self, name: str, *operands: SSAValue, dtype: Attribute | None = None, predicate: str = "") -> SSAValue:
        type_ = operands[-1].type if dtype is None else dtype
        attributes = {"predicate": predicate} if predicate else {}
        return insert_before(self.before, make_op(name, list(operands), type_, attributes))

    def number(self, value: float, like: SSAValue) -> SSAValue:
        return insert_before(self.before, make_constant(value, str(like.type)))

    def integer(self, name: str, value: SSAValue, number: int) -> SSAValue:
        """Return an op of an integer and a constant."""
        return self.op(name, value, self.number(number, value))

    def compare(self, predicate: str, value: SSAValue, number: int) -> SSAValue:
        return self.op("arith.cmpi", value, self.number(number, value), dtype=builtin.i1, predicate=predicate)

    def select(self, condition: SSAValue, then: SSAValue | int, otherwise: SSAValue) -> SSAValue:
        chosen = self.number(then, otherwise) if isinstance(then, int) else then
        return self.op("arith.select", condition, chosen, otherwise)

    def converted(self, value: SSAValue, type_: Attribute) -> SSAValue:
        """Return an ``f32`` in another type."""
        if value.type == type_:
            return value
        return self.op("arith.extf" if isinstance(type_, builtin.Float64Type) else "arith.truncf", value, dtype=type_)

    def widened(self, value: SSAValue, format_: FloatSemantics) -> SSAValue:
        """Return a float of 8 bits as ``f32``; its exponent is shifted by a product, which also takes subnormals."""
        mantissa = 23 - format_.mantissa_bits
        bits = self.op("arith.extui", self.op("arith.bitcast", value, dtype=builtin.i8), dtype=builtin.i32)
        amount = self.integer("arith.andi", bits, 0x7F)
        sign = self.integer("arith.shli", self.integer("arith.andi", bits, 0x80), 24)
        shifted = self.integer("arith.shli", amount, mantissa)
        scale = 2.0 ** (127 - format_.exponent_bias)
        small = self.op("arith.bitcast", shifted, dtype=builtin.f32)
        number = self.op("arith.bitcast", self.op("arith.mulf", small, self.number(scale, small)), dtype=builtin.i32)
        if format_.nonfinite is FloatNonfiniteBehavior.IEEE:
            special = self.integer("arith.ori", shifted, 0x7F800000)
            is_special = self.compare("uge", amount, format_.max_exponent << format_.mantissa_bits)
            number = self.select(is_special, special, number)
        else:
            has_sign = format_.nan_encoding is FloatNanEncoding.NEGATIVE_ZERO
            is_nan = self.compare("eq", bits if has_sign else amount, 0x80 if has_sign else 0x7F)
            number = self.select(is_nan, 0x7FC00000, number)
        return self.op("arith.bitcast", self.op("arith.ori", number, sign), dtype=builtin.f32)

    def rounded(self, value: SSAValue, format_: FloatSemantics, type_: Attribute) -> SSAValue:
        """Return a float rounded to 8 bits: to the nearest, halves to even; what is too large is infinite or a NaN."""
        if str(value.type) not in _WIDE:
            value = self.op("arith.extf", value, dtype=builtin.f32)
        exponent, mantissa = _WIDE[str(value.type)]
        width = 1 + exponent + mantissa
        bits = self.op("arith.bitcast", value, dtype=builtin.IntegerType(width))
        amount = self.integer("arith.andi", bits, (1 << (width - 1)) - 1)
        code = self._code(amount, value, format_, exponent, mantissa)
        code = self._special(amount, code, format_, ((1 << exponent) - 1) << mantissa)
        sign = self.integer("arith.andi", self.integer("arith.shrui", bits, width - 8), 0x80)
        found = self.op("arith.ori", code, sign)
        if format_.nan_encoding is FloatNanEncoding.NEGATIVE_ZERO:
            found = self.select(self.compare("eq", code, 0), code, found)
        return self.op("arith.bitcast", self.op("arith.trunci", found, dtype=builtin.i8), dtype=type_)

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
        if format_.nan_encoding is FloatNanEncoding.NEGATIVE_ZERO:
            return self.select(self.compare("ugt", code, 0x7F), 0x80, code)
        return self.select(self.compare("ugt", code, 0x7E), 0x7F, code)
