"""Floats as LLVM: arithmetic, comparisons, conversions, and ``bf16`` by integers where the processor has none.

Hardware of some hosts flushes small numbers of ``bf16`` to zero; integers give the same bits everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from xdsl.dialects import arith
from xdsl.ir import Attribute, Operation, SSAValue

from shardy_py.kernels.elemental.scalars import FLOAT_PREDICATES
from shardy_py.kernels.lower.writer import FunctionWriter, Handler, is_short


def computed(writer: FunctionWriter, value: SSAValue) -> str:
    """Return a float as the processor computes with it."""
    text = writer.get(value)
    return widened(writer, text) if is_short(value, writer.target) else text


def computed_type(writer: FunctionWriter, type_: Attribute) -> str:
    """Return the type that the processor computes in."""
    return "float" if is_short(type_, writer.target) else writer.type(type_)


def bind_rounded(writer: FunctionWriter, result: SSAValue, text: str) -> None:
    """Let a result be what was computed, rounded to its type."""
    writer.bind(result, rounded(writer, text) if is_short(result, writer.target) else text)


def flags(op: Operation) -> str:
    """Return what an op allows to be less exact."""
    attribute: Any = op.properties.get("fastmath")
    return "".join(f"{flag.value} " for flag in sorted(attribute.data)) if attribute is not None else ""


def binary(name: str) -> Handler:
    """Return what writes an instruction on two floats."""

    def write(writer: FunctionWriter, op: Operation) -> None:
        left, right = (computed(writer, value) for value in op.operands)
        type_ = computed_type(writer, op.results[0].type)
        bind_rounded(writer, op.results[0], writer.new(f"{name} {flags(op)}{type_} {left}, {right}"))

    return write


SUFFIXES = {"bfloat": "bf16", "half": "f16", "float": "f32", "double": "f64"}


def intrinsic(name: str) -> Handler:
    """Return what writes a call of an intrinsic of LLVM on floats."""

    def write(writer: FunctionWriter, op: Operation) -> None:
        type_ = computed_type(writer, op.results[0].type)
        arguments = [(type_, computed(writer, value)) for value in op.operands]
        called = writer.call(f"llvm.{name}.{SUFFIXES[type_]}", type_, arguments, flags(op))
        bind_rounded(writer, op.results[0], called)

    return write


def negf(writer: FunctionWriter, op: arith.NegfOp) -> None:
    """Change the sign."""
    value = writer.get(op.operand)
    if is_short(op.result, writer.target):
        writer.let(op.result, f"xor i16 {value}, -32768")
    else:
        writer.let(op.result, f"fneg {writer.type(op.result)} {value}")


def cmpf(writer: FunctionWriter, op: arith.CmpfOp) -> None:
    """Compare two floats."""
    left, right = (computed(writer, value) for value in op.operands)
    name = FLOAT_PREDICATES[op.predicate.value.data]
    writer.let(op.result, f"fcmp {name} {computed_type(writer, op.lhs.type)} {left}, {right}")


def from_integer(name: str) -> Handler:
    """Return what writes an integer as a float."""

    def write(writer: FunctionWriter, op: Operation) -> None:
        type_ = computed_type(writer, op.results[0].type)
        bind_rounded(writer, op.results[0], writer.new(f"{name} {writer.typed(op.operands[0])} to {type_}"))

    return write


def to_integer(name: str) -> Handler:
    """Return what writes a float as an integer."""

    def write(writer: FunctionWriter, op: Operation) -> None:
        (source,) = op.operands
        type_ = computed_type(writer, source.type)
        writer.let(op.results[0], f"{name} {type_} {computed(writer, source)} to {writer.type(op.results[0])}")

    return write


def extf(writer: FunctionWriter, op: Operation) -> None:
    """Return a float in a wider type."""
    source, result = op.operands[0], op.results[0]
    value, type_ = computed(writer, source), computed_type(writer, source.type)
    if type_ == writer.type(result):
        writer.bind(result, value)
    else:
        writer.let(result, f"fpext {type_} {value} to {writer.type(result)}")


def truncf(writer: FunctionWriter, op: Operation) -> None:
    """Return a float in a narrower type, to the nearest, halves to even."""
    source, result = op.operands[0], op.results[0]
    value, type_ = writer.get(source), writer.type(source)
    # The host's library need not have what takes f64 to 16 bits.
    if type_ == "double" and writer.type(result) != "float" and not writer.target.is_device:
        value, type_ = rounded_to_odd(writer, value), "float"
    if not is_short(result, writer.target):
        writer.let(result, f"fptrunc {type_} {value} to {writer.type(result)}")
        return
    if type_ != "float":
        value = writer.new(f"fpext {type_} {value} to float")
    writer.bind(result, rounded(writer, value))


def bitcast(writer: FunctionWriter, op: Operation) -> None:
    """Return the same bits as another type."""
    source, result = op.operands[0], op.results[0]
    if writer.type(source) == writer.type(result):
        writer.bind(result, writer.get(source))
    else:
        writer.let(result, f"bitcast {writer.typed(source)} to {writer.type(result)}")


def create(writer: FunctionWriter, op: Operation) -> None:
    """Put a complex number together: a vector of its two parts."""
    real, imaginary = (writer.typed(value) for value in op.operands)
    type_ = writer.type(op.results[0])
    half = writer.new(f"insertelement {type_} poison, {real}, i32 0")
    writer.let(op.results[0], f"insertelement {type_} {half}, {imaginary}, i32 1")


def part(number: int) -> Handler:
    """Return what writes a part of a complex number."""

    def write(writer: FunctionWriter, op: Operation) -> None:
        writer.let(op.results[0], f"extractelement {writer.typed(op.operands[0])}, i32 {number}")

    return write


def complex_constant(writer: FunctionWriter, op: Any) -> None:
    """Let a complex number stand for itself."""
    element = op.complex.type.element_type
    type_ = writer.type(element)
    real, imaginary = (writer.number(item.value.data, element) for item in op.value.data)
    writer.bind(op.complex, f"<{type_} {real}, {type_} {imaginary}>")


HANDLERS: Mapping[str, Handler] = MappingProxyType(
    {
        "arith.addf": binary("fadd"),
        "arith.bitcast": bitcast,
        "arith.cmpf": cmpf,
        "arith.divf": binary("fdiv"),
        "arith.extf": extf,
        "arith.fptosi": to_integer("fptosi"),
        "arith.fptoui": to_integer("fptoui"),
        "arith.maximumf": intrinsic("maximum"),
        "arith.maxnumf": intrinsic("maxnum"),
        "arith.minimumf": intrinsic("minimum"),
        "arith.minnumf": intrinsic("minnum"),
        "arith.mulf": binary("fmul"),
        "arith.negf": negf,
        "arith.sitofp": from_integer("sitofp"),
        "arith.subf": binary("fsub"),
        "arith.truncf": truncf,
        "arith.uitofp": from_integer("uitofp"),
        "complex.constant": complex_constant,
        "complex.create": create,
        "complex.im": part(1),
        "complex.re": part(0),
    }
)


def widened(writer: FunctionWriter, value: str) -> str:
    """Return the ``f32`` of the bits of a ``bf16``."""
    bits = writer.new(f"zext i16 {value} to i32")
    high = writer.new(f"shl nuw i32 {bits}, 16")
    return writer.new(f"bitcast i32 {high} to float")


def rounded(writer: FunctionWriter, value: str) -> str:
    """Return the bits of the nearest ``bf16`` of a ``f32``, halves to even; NaNs stay NaNs and become quiet."""
    bits = writer.new(f"bitcast float {value} to i32")
    high = writer.new(f"lshr i32 {bits}, 16")
    last = writer.new(f"and i32 {high}, 1")
    half = writer.new(f"add nuw nsw i32 {last}, 32767")
    near = writer.new(f"lshr i32 {writer.new(f'add i32 {bits}, {half}')}, 16")
    quiet = writer.new(f"or i32 {high}, 64")
    is_nan = writer.new(f"fcmp uno float {value}, 0.0")
    chosen = writer.new(f"select i1 {is_nan}, i32 {quiet}, i32 {near}")
    return writer.new(f"trunc i32 {chosen} to i16")


def rounded_to_odd(writer: FunctionWriter, value: str) -> str:
    """Return a ``f64`` as ``f32``, to an odd number where it does not fit, so that rounding again makes no tie."""
    near = writer.new(f"fptrunc double {value} to float")
    back = writer.new(f"fpext float {near} to double")
    amount = writer.call("llvm.fabs.f64", "double", [("double", value)])
    amount_back = writer.call("llvm.fabs.f64", "double", [("double", back)])
    is_beyond = writer.new(f"fcmp ogt double {amount_back}, {amount}")
    is_inexact = writer.new(f"fcmp one double {back}, {value}")
    bits = writer.new(f"bitcast float {near} to i32")
    less = writer.new(f"sub i32 {bits}, {writer.new(f'zext i1 {is_beyond} to i32')}")
    odd = writer.new(f"or i32 {less}, {writer.new(f'zext i1 {is_inexact} to i32')}")
    # An overflow of f32 is infinite in the shorter type, too.
    infinite = writer.new(f"fcmp oeq double {amount_back}, 0x7FF0000000000000")
    chosen = writer.new(f"select i1 {infinite}, i32 {bits}, i32 {odd}")
    return writer.new(f"bitcast i32 {chosen} to float")
