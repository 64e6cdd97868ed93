"""Atomic updates as LLVM.

On the host one processor thread runs the whole grid, so that a load, an operation and a store are atomic.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from xdsl.dialects import builtin, llvm
from xdsl.ir import Attribute

from shardy_py.kernels.dialect.llvm_more import DEVICE, CompareExchangeOp, LLVMAtomicRMWOp
from shardy_py.kernels.lower import bfloat
from shardy_py.kernels.lower.writer import FunctionWriter, Handler, is_short

_ON_HOST: Mapping[str, str] = MappingProxyType(
    {"add": "add", "_and": "and", "_or": "or", "_xor": "xor", "fadd": "fadd"}
)
_EXTREMA: Mapping[str, str] = MappingProxyType({"max": "smax", "min": "smin", "umax": "umax", "umin": "umin"})


def scope(writer: FunctionWriter) -> str:
    """Return who sees an atomic access as a whole: on a device its threads."""
    return f'syncscope("{DEVICE}") ' if writer.target.is_device else ""


def atomic_rmw(writer: FunctionWriter, op: LLVMAtomicRMWOp) -> None:
    """Update an element by one operation."""
    if not writer.target.is_device:
        _on_host(writer, op)
    elif isinstance(op.value.type, builtin.VectorType):
        _add_vector(writer, op)
    else:
        kind = op.kind.removeprefix("_")
        place, value = writer.typed(op.ptr), writer.typed(op.value)
        writer.let(op.result, f"atomicrmw {kind} {place}, {value} {scope(writer)}monotonic")


def _on_host(writer: FunctionWriter, op: LLVMAtomicRMWOp) -> None:
    type_ = writer.type(op.value)
    current = writer.new(f"load {type_}, {writer.typed(op.ptr)}{_alignment(op.value.type, writer)}")
    value = writer.get(op.value)
    if op.kind in _EXTREMA:
        new = writer.call(f"llvm.{_EXTREMA[op.kind]}.{type_}", type_, [(type_, current), (type_, value)])
    elif is_short(op.value, writer.target):
        wide = [bfloat.widened(writer, item) for item in (current, value)]
        new = bfloat.rounded(writer, writer.new(f"fadd float {wide[0]}, {wide[1]}"))
    else:
        new = writer.new(f"{_ON_HOST[op.kind]} {type_} {current}, {value}")
    writer.line(f"store {type_} {new}, {writer.typed(op.ptr)}{_alignment(op.value.type, writer)}")
    writer.bind(op.result, current)


def _alignment(type_: Attribute, writer: FunctionWriter) -> str:
    """Return the alignment of what is moved: a vector has that of its elements on the host."""
    return ", align 4" if isinstance(type_, builtin.VectorType) and not writer.target.is_device else ""


def _add_vector(writer: FunctionWriter, op: LLVMAtomicRMWOp) -> None:
    """Add two or four ``f32`` at once, for which LLVM has the text of the instruction only."""
    (count,) = op.value.type.get_shape()  # type: ignore[attr-defined]
    results = ", ".join(f"${number}" for number in range(count))
    values = ", ".join(f"${number}" for number in range(count + 1, 2 * count + 1))
    text = f"atom.global.v{count}.f32.add {{{results}}}, [${count}], {{{values}}};"
    constraints = ",".join(["=f"] * count + ["l"] + ["f"] * count)
    arguments = [writer.typed(op.ptr)]
    for number in range(count):
        arguments.append("float " + writer.new(f"extractelement {writer.typed(op.value)}, i32 {number}"))
    struct = "{ " + ", ".join(["float"] * count) + " }"
    made = writer.new(f'call {struct} asm sideeffect "{text}", "{constraints},~{{memory}}"({", ".join(arguments)})')
    found, type_ = "poison", writer.type(op.result)
    for number in range(count):
        part = writer.new(f"extractvalue {struct} {made}, {number}")
        found = writer.new(f"insertelement {type_} {found}, float {part}, i32 {number}")
    writer.bind(op.result, found)


def compare_exchange(writer: FunctionWriter, op: CompareExchangeOp) -> None:
    """Write the new element where the expected one is."""
    operands = ", ".join(writer.typed(value) for value in op.operands)
    writer.let(op.result, f"cmpxchg {operands} {scope(writer)}monotonic monotonic")


def extract_value(writer: FunctionWriter, op: llvm.ExtractValueOp) -> None:
    """Return a field of a struct."""
    (number,) = op.position.get_values()
    writer.let(op.res, f"extractvalue {writer.typed(op.container)}, {number}")


HANDLERS: Mapping[str, Handler] = MappingProxyType(
    {
        "llvm.atomicrmw": atomic_rmw,
        "llvm.cmpxchg": compare_exchange,
        "llvm.extractvalue": extract_value,
    }
)
