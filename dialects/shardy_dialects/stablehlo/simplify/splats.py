"""Ops on constants that are one number in all places, whose result is such a constant."""

from __future__ import annotations

import math
import operator
import struct
from collections.abc import Callable, Mapping, Sequence

from shardy_dialects.stablehlo.attributes import case_of
from shardy_dialects.stablehlo.elementwise.ops import CLAMP, COMPARE, CONVERT
from shardy_dialects.stablehlo.local.new_ops import CONSTANT, create_splat
from shardy_dialects.stablehlo.shape import BROADCAST, RESHAPE
from shardy_dialects.stablehlo.slicing import CONCATENATE, SLICE
from shardy_dialects.stablehlo.splats import splat_of, splat_text
from shardy_py.ir.graph.program import Op, Value
from shardy_py.ir.graph.types import TensorType, static_shape

_MOVING = (BROADCAST, CONCATENATE, RESHAPE, SLICE, "stablehlo.reverse", "stablehlo.transpose")
_FLOATS: Mapping[str, str] = {"f32": "f", "f64": "d"}
_INTEGER_BITS: Mapping[str, int] = {"i1": 1, "i8": 8, "i16": 16, "i32": 32, "i64": 64}
_EXACT_BITS = 53
"""Integers of so many bits are exact as floats."""
_UNARY: Mapping[str, Callable[[float], float]] = {
    "stablehlo.abs": abs,
    "stablehlo.cosine": math.cos,
    "stablehlo.exponential": math.exp,
    "stablehlo.log": math.log,
    "stablehlo.negate": operator.neg,
    "stablehlo.rsqrt": lambda number: 1 / math.sqrt(number),
    "stablehlo.sine": math.sin,
    "stablehlo.sqrt": math.sqrt,
    "stablehlo.tanh": math.tanh,
}
_BINARY: Mapping[str, Callable[[float, float], float]] = {
    "stablehlo.add": operator.add,
    "stablehlo.divide": operator.truediv,
    "stablehlo.maximum": max,
    "stablehlo.minimum": min,
    "stablehlo.multiply": operator.mul,
    "stablehlo.subtract": operator.sub,
}
_COMPARISONS: Mapping[str, Callable[[float, float], bool]] = {
    "EQ": operator.eq,
    "GE": operator.ge,
    "GT": operator.gt,
    "LE": operator.le,
    "LT": operator.lt,
    "NE": operator.ne,
}


def fold_splat(op: Op) -> Value | None:
    """Return the constant that an op on constants is, or None; a number that its type cannot hold is left alone."""
    type_ = op.result.type
    if not op.operands or not isinstance(type_, TensorType) or static_shape(type_) is None:
        return None
    if not all(_is_constant(value) for value in op.operands):
        return None
    text = splat_text(op.operands[0]) if op.name in _MOVING and _are_equal(op.operands) else _computed(op, type_)
    return None if text is None else create_splat(op, text)


def _is_constant(value: Value) -> bool:
    producer = value.defining_op
    if producer is None or producer.name != CONSTANT:
        return False
    text = splat_text(value)
    return text is not None and "[" not in text and '"' not in text


def _are_equal(values: Sequence[Value]) -> bool:
    return len({splat_text(value) for value in values}) == 1


def _computed(op: Op, type_: TensorType) -> str | None:
    """Return the text of the number that an elementwise op gives, or None."""
    numbers = [_rounded(splat_of(value), getattr(value.type, "element_type", "")) for value in op.operands]
    try:
        number = _number(op, [number for number in numbers if number is not None]) if None not in numbers else None
    except (ArithmeticError, ValueError):
        return None
    number = _rounded(number, type_.element_type)
    return None if number is None else _text(number, type_.element_type)


def _rounded(number: float | None, element_type: str) -> float | None:
    """Return a number as its type holds it; None where it cannot, or where Python's floats cannot."""
    if number is None or not math.isfinite(number):
        return None
    if element_type in _FLOATS:
        code = _FLOATS[element_type]
        try:
            rounded: float = struct.unpack(code, struct.pack(code, number))[0]
        except OverflowError:
            return None
        return rounded
    if element_type == "i1":
        return float(bool(number))
    bits = min(_INTEGER_BITS.get(element_type, 0), _EXACT_BITS)
    fits = bits and number == int(number) and -(2 ** (bits - 1)) <= number < 2 ** (bits - 1)
    return number if fits else None


def _number(op: Op, numbers: Sequence[float]) -> float | None:
    element_type = getattr(op.operands[0].type, "element_type", "")
    if op.name == COMPARE:
        if case_of(op, "compare_type") == "TOTALORDER":
            # Zeros of both signs differ there, and not in Python.
            return None
        return _COMPARISONS[case_of(op, "comparison_direction")](*numbers)
    if op.name == CONVERT and (element_type in _FLOATS or element_type in _INTEGER_BITS):
        return numbers[0]
    if op.name == CLAMP:
        return min(max(numbers[0], numbers[1]), numbers[2])
    is_float = element_type in _FLOATS
    if op.name in _BINARY and (is_float or op.name != "stablehlo.divide") and element_type != "i1":
        return _BINARY[op.name](*numbers)
    return _UNARY[op.name](numbers[0]) if op.name in _UNARY and is_float else None


def _text(number: float, element_type: str) -> str:
    """Return a number as MLIR writes it."""
    if element_type in _FLOATS:
        return format(number, ".17e")
    if element_type == "i1":
        return "true" if number else "false"
    return str(int(number))
