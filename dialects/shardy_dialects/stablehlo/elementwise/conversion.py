"""Conversions between element types."""

from __future__ import annotations

from collections.abc import Callable

from shardy_dialects.stablehlo.bodies import (
    as_boolean,
    element_type,
    is_boolean,
    is_complex,
    is_float,
    is_unsigned,
    kernel_type,
    operands,
    widen_small_float,
    width,
)
from shardy_py.ir.graph.program import Op
from shardy_py.plugins import ElementBuilder, Scalar
from shardy_py.support.element_types import mlir_element_bits

_FLOAT_BITS = {"bf16": 16, "f16": 16, "f32": 32, "f64": 64}


def convert(b: ElementBuilder, op: Op) -> Scalar:
    """Convert; floats that integers cannot hold become the nearest one, NaNs zero."""
    source, target = op.operands[0], op.results[0]
    x = b.operand(0)
    dtype = kernel_type(element_type(target))
    if element_type(source) == element_type(target):
        return x
    if is_complex(target):
        return _to_complex(b, op, x)
    if is_complex(source):
        # Of a complex number the real part is converted, to booleans too.
        x = b.op("complex.re", x, dtype=element_type(source)[len("complex<") : -1])
        if x.dtype == dtype:
            return x
    if is_boolean(target):
        return _to_boolean(b, op, x)
    if not is_float(target):
        # Small floats do not have the bounds of integers.
        x = widen_small_float(b, x)
    if is_float(source) or is_complex(source):
        return _between_floats(b, x, dtype) if is_float(target) else _to_integer(b, op, x)
    if is_float(target):
        # A boolean is 0 or 1, so that its sign is never seen.
        unsigned = is_unsigned(source) and not is_boolean(source)
        return b.op("arith.uitofp" if unsigned else "arith.sitofp", x, dtype=dtype)
    return _between_integers(b, op, x, dtype)


def _to_complex(b: ElementBuilder, op: Op, x: Scalar) -> Scalar:
    target = element_type(op.results[0])
    part = target[len("complex<") : -1]
    if is_complex(op.operands[0]):
        source_part = element_type(op.operands[0])[len("complex<") : -1]
        real, imaginary = (b.op(name, x, dtype=source_part) for name in ("complex.re", "complex.im"))
        return b.op("complex.create", _between_floats(b, real, part), _between_floats(b, imaginary, part), dtype=target)
    if is_float(op.operands[0]):
        real = x if x.dtype == part else _between_floats(b, x, part)
    else:
        real = b.op("arith.uitofp" if is_unsigned(op.operands[0]) else "arith.sitofp", x, dtype=part)
    return b.op("complex.create", real, b.constant(0, part), dtype=target)


def _to_boolean(b: ElementBuilder, op: Op, x: Scalar) -> Scalar:
    zero = b.constant(0, x.dtype)
    if is_float(op.operands[0]) or is_complex(op.operands[0]):
        return as_boolean(b, b.op("arith.cmpf", x, zero, dtype="i1", predicate="une"))
    return as_boolean(b, b.op("arith.cmpi", x, zero, dtype="i1", predicate="ne"))


def _between_floats(b: ElementBuilder, x: Scalar, dtype: str) -> Scalar:
    source, target = _FLOAT_BITS.get(x.dtype, 8), _FLOAT_BITS.get(dtype, 8)
    if source == target:
        # Neither type holds the other one: they meet in one that holds both.
        wide = b.op("arith.extf", x, dtype="f32")
        return b.op("arith.truncf", wide, dtype=dtype)
    return b.op("arith.extf" if source < target else "arith.truncf", x, dtype=dtype)


def _to_integer(b: ElementBuilder, op: Op, x: Scalar) -> Scalar:
    target = op.results[0]
    dtype, bits = kernel_type(element_type(target)), width(target)
    signed = not is_unsigned(target)
    least, most = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
    number = b.op("arith.fptosi" if signed else "arith.fptoui", x, dtype=dtype)
    too_small = b.op("arith.cmpf", x, b.constant(float(least), x.dtype), dtype="i1", predicate="ole")
    number = b.op("arith.select", too_small, b.constant(least, dtype), number, dtype=dtype)
    too_large = b.op("arith.cmpf", x, b.constant(float(most), x.dtype), dtype="i1", predicate="oge")
    number = b.op("arith.select", too_large, b.constant(most, dtype), number, dtype=dtype)
    is_nan = b.op("arith.cmpf", x, x, dtype="i1", predicate="uno")
    return b.op("arith.select", is_nan, b.constant(0, dtype), number, dtype=dtype)


def _between_integers(b: ElementBuilder, op: Op, x: Scalar, dtype: str) -> Scalar:
    source = 8 if is_boolean(op.operands[0]) else width(op.operands[0])
    target = width(op.results[0])
    if source == target:
        return x
    if source > target:
        return b.op("arith.trunci", x, dtype=dtype)
    return b.op("arith.extui" if is_unsigned(op.operands[0]) else "arith.extsi", x, dtype=dtype)


def bitcast_convert(b: ElementBuilder, op: Op) -> Scalar:
    """Read the bits as another type: the same, those of a part of a word, or those of all parts of a word."""
    dtype = kernel_type(element_type(op.results[0]))
    source_bits, target_bits = (
        mlir_element_bits(element_type(value)) or 0 for value in (op.operands[0], op.results[0])
    )
    if source_bits == target_bits:
        return _bits_as(b, b.operand(0), dtype)
    return _bits_as(
        b,
        _part_of_word(b, source_bits, target_bits)
        if source_bits > target_bits
        else _word_of_parts(b, source_bits, target_bits),
        dtype,
    )


def _bits_as(b: ElementBuilder, x: Scalar, dtype: str) -> Scalar:
    return x if x.dtype == dtype else b.op("arith.bitcast", x, dtype=dtype)


def _part_of_word(b: ElementBuilder, source_bits: int, target_bits: int) -> Scalar:
    """Return the bits of a word at the last index, the lowest ones first."""
    word = f"i{source_bits}"
    place = b.op("arith.index_castui", b.indices[-1], dtype=word)
    distance = b.op("arith.muli", place, b.constant(target_bits, word))
    shifted = b.op("arith.shrui", _bits_as(b, b.operand(0), word), distance)
    return b.op("arith.trunci", shifted, dtype=f"i{target_bits}")


def _word_of_parts(b: ElementBuilder, source_bits: int, target_bits: int) -> Scalar:
    """Return the bits of all elements along the operand's last dimension, the first ones lowest."""
    word = f"i{target_bits}"
    joined = b.constant(0, word)
    for number in range(target_bits // source_bits):
        part = _bits_as(b, b.operand(0, [*b.indices, b.constant(number, "index")]), f"i{source_bits}")
        wide = b.op("arith.extui", part, dtype=word)
        joined = b.op("arith.ori", joined, b.op("arith.shli", wide, b.constant(number * source_bits, word)))
    return joined


def complex_(b: ElementBuilder, op: Op) -> Scalar:
    """Make a complex number of its parts."""
    return b.op("complex.create", *operands(b, op), dtype=element_type(op.results[0]))


def part(name: str, b: ElementBuilder, op: Op) -> Scalar:
    """Return a part of a complex number; floats are their own real part."""
    x = b.operand(0)
    if is_complex(op.operands[0]):
        return b.op(f"complex.{name}", x, dtype=element_type(op.results[0]))
    return x if name == "re" else b.constant(0, x.dtype)


_PARTS = {"bf16": (8, 7), "f16": (5, 10), "f32": (8, 23), "f64": (11, 52)}


def reduce_precision(b: ElementBuilder, op: Op) -> Scalar:
    """Round to fewer bits of mantissa and exponent, in integers: half to even, overflow to infinity, NaNs stay."""
    x = b.operand(0)
    if x.dtype not in _PARTS:
        return b.op("arith.truncf", _reduced(b, op, b.op("arith.extf", x, dtype="f32")), dtype=x.dtype)
    return _reduced(b, op, x)


def _reduced(b: ElementBuilder, op: Op, x: Scalar) -> Scalar:
    exponent_bits, mantissa_bits = _PARTS[x.dtype]
    exponent, mantissa = int(op.attributes["exponent_bits"]), int(op.attributes["mantissa_bits"])
    bits = 1 + exponent_bits + mantissa_bits
    dtype = f"i{bits}"
    integer = b.op("arith.bitcast", x, dtype=dtype)

    def constant(value: int) -> Scalar:
        return b.constant(value - (1 << bits) if value >> (bits - 1) else value, dtype)

    magnitude = b.op("arith.andi", integer, constant((1 << (bits - 1)) - 1))
    infinity = ((1 << exponent_bits) - 1) << mantissa_bits
    is_nan = b.op("arith.cmpi", magnitude, constant(infinity), dtype="i1", predicate="ugt")
    rounded_bits = integer
    dropped = mantissa_bits - mantissa
    if dropped > 0:
        last = b.op("arith.shrui", b.op("arith.andi", integer, constant(1 << dropped)), constant(dropped))
        bias = b.op("arith.addi", last, constant((1 << (dropped - 1)) - 1))
        rounded = b.op("arith.addi", integer, bias)
        rounded_bits = b.op("arith.andi", rounded, constant(((1 << bits) - 1) & ~((1 << dropped) - 1)))
    if exponent < exponent_bits:
        rounded_bits = _narrowed(b, rounded_bits, constant, exponent, exponent_bits, mantissa_bits)
    nan = b.op("arith.select", is_nan, integer, rounded_bits, dtype=dtype)
    if mantissa == 0:
        nan = b.op("arith.select", is_nan, constant(infinity | 1 << (mantissa_bits - 1)), rounded_bits, dtype=dtype)
    return b.op("arith.bitcast", nan, dtype=x.dtype)


def _narrowed(
    b: ElementBuilder,
    bits: Scalar,
    constant: Callable[[int], Scalar],
    exponent: int,
    exponent_bits: int,
    mantissa_bits: int,
) -> Scalar:
    """Return a float's bits with what a shorter exponent cannot hold made infinite or zero."""
    dtype = bits.dtype
    width_ = int(dtype[1:])
    bias, own_bias = (1 << (exponent - 1)) - 1, (1 << (exponent_bits - 1)) - 1
    mask = ((1 << exponent_bits) - 1) << mantissa_bits
    sign = b.op("arith.andi", bits, constant(1 << (width_ - 1)))
    field = b.op("arith.andi", bits, constant(mask))
    overflows = b.op("arith.cmpi", field, constant((own_bias + bias) << mantissa_bits), dtype="i1", predicate="ugt")
    underflows = b.op("arith.cmpi", field, constant((own_bias - bias) << mantissa_bits), dtype="i1", predicate="ule")
    infinite = b.op("arith.ori", sign, constant(mask))
    narrowed = b.op("arith.select", overflows, infinite, bits, dtype=dtype)
    return b.op("arith.select", underflows, sign, narrowed, dtype=dtype)
