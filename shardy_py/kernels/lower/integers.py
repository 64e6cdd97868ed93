"""Integers, indices and conditions as LLVM."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from xdsl.dialects import arith, builtin
from xdsl.ir import Operation

from shardy_py.kernels.dialect.types import INDEX
from shardy_py.kernels.elemental.scalars import INTEGER_PREDICATES
from shardy_py.kernels.lower.literals import constant_text
from shardy_py.kernels.lower.writer import FunctionWriter, Handler, operands
from shardy_py.kernels.passes.base import constant_value


def binary(name: str) -> Handler:
    """Return what writes an instruction of two operands of one type."""

    def write(writer: FunctionWriter, op: Operation) -> None:
        left, right = operands(writer, op)
        flags = op.properties.get("overflowFlags")
        known = "".join(f"{flag} " for flag in _flags(flags))
        writer.let(op.results[0], f"{name} {known}{writer.type(op.results[0])} {left}, {right}")

    return write


def shift(name: str) -> Handler:
    """Return what writes a shift by less than the width.

    LLVM 22 joins a shift on a device with the choice that gives 0 for larger amounts, and then reads 32 bits of an
    amount of 64: it does not where the amount is bounded once more.
    """
    write_shift = binary(name)

    def write(writer: FunctionWriter, op: Operation) -> None:
        type_, (left, amount) = writer.type(op.results[0]), operands(writer, op)
        if not writer.target.is_device or type_ != "i64" or constant_value(op.operands[1]) is not None:
            write_shift(writer, op)
            return
        bounded = writer.call("llvm.umin.i64", type_, [(type_, amount), (type_, "63")])
        writer.let(op.results[0], f"{name} {type_} {left}, {bounded}")

    return write


def _flags(attribute: object) -> list[str]:
    if not isinstance(attribute, arith.IntegerOverflowAttr):
        return []
    return [
        flag.value for flag in (arith.IntegerOverflowFlag.NUW, arith.IntegerOverflowFlag.NSW) if flag in attribute.data
    ]


def intrinsic(name: str, *more: str) -> Handler:
    """Return what writes a call of an intrinsic of LLVM on integers.

    Args:
        name: Its name without ``llvm.`` and the type.
        more: Arguments behind the operands.
    """

    def write(writer: FunctionWriter, op: Operation) -> None:
        type_ = writer.type(op.results[0])
        arguments = [(type_, value) for value in operands(writer, op)]
        arguments += [tuple(item.split()) for item in more]  # type: ignore[misc]
        writer.bind(op.results[0], writer.call(f"llvm.{name}.{type_}", type_, arguments))

    return write


def cmpi(writer: FunctionWriter, op: arith.CmpiOp) -> None:
    """Compare two integers."""
    left, right = operands(writer, op)
    name = INTEGER_PREDICATES[op.predicate.value.data]
    writer.let(op.result, f"icmp {name} {writer.type(op.lhs)} {left}, {right}")


def select(writer: FunctionWriter, op: arith.SelectOp) -> None:
    """Take one of two values."""
    condition, then, otherwise = (writer.typed(value) for value in op.operands)
    writer.let(op.result, f"select {condition}, {then}, {otherwise}")


def constant(writer: FunctionWriter, op: arith.ConstantOp) -> None:
    """Let the value stand for itself."""
    writer.bind(op.result, constant_text(op.value, writer.target, writer.module.index_width))


def _width(writer: FunctionWriter, value: object) -> int:
    type_ = getattr(value, "type", None)
    if isinstance(type_, builtin.IntegerType):
        return type_.width.data
    return writer.module.index_width


def resized(extension: str) -> Handler:
    """Return what writes an integer in another width.

    Args:
        extension: The instruction that widens.
    """

    def write(writer: FunctionWriter, op: Operation) -> None:
        source, result = op.operands[0], op.results[0]
        before, after = _width(writer, source), _width(writer, result)
        if before == after:
            writer.bind(result, writer.get(source))
            return
        name = extension if after > before else "trunc"
        writer.let(result, f"{name} {writer.typed(source)} to {writer.type(result)}")

    return write


def index_cast(writer: FunctionWriter, op: Operation) -> None:
    """Write an integer as an index, or an index as an integer.

    An integer that an index cannot hold becomes the nearest one, which is not in any buffer either.
    """
    _cast_index(writer, op, "sext", ("smax", "smin"))


def index_castui(writer: FunctionWriter, op: Operation) -> None:
    """Write an integer without a sign as an index, or an index as an integer.

    Indices are not negative; LLVM then need not know which extension the device has for free. Integers may have their
    highest bit.
    """
    _cast_index(writer, op, "zext nneg" if op.operands[0].type == INDEX else "zext", ("umin",))


def _cast_index(writer: FunctionWriter, op: Operation, extension: str, limits: Sequence[str]) -> None:
    (source,), (result,) = op.operands, op.results
    before, after = _width(writer, source), _width(writer, result)
    if result.type != INDEX or before <= after:
        resized(extension)(writer, op)
        return
    text, type_ = writer.get(source), writer.type(source)
    for name in limits:
        limit = {"smax": -1 << after - 1, "smin": (1 << after - 1) - 1, "umin": (1 << after) - 1}[name]
        text = writer.call(f"llvm.{name}.{type_}", type_, [(type_, text), (type_, str(limit))])
    writer.let(result, f"trunc {type_} {text} to {writer.type(result)}")


HANDLERS: Mapping[str, Handler] = MappingProxyType(
    {
        "arith.addi": binary("add"),
        "arith.andi": binary("and"),
        "arith.cmpi": cmpi,
        "arith.constant": constant,
        "arith.divsi": binary("sdiv"),
        "arith.divui": binary("udiv"),
        "arith.extsi": resized("sext"),
        "arith.extui": resized("zext"),
        "arith.index_cast": index_cast,
        "arith.index_castui": index_castui,
        "arith.maxsi": intrinsic("smax"),
        "arith.maxui": intrinsic("umax"),
        "arith.minsi": intrinsic("smin"),
        "arith.minui": intrinsic("umin"),
        "arith.muli": binary("mul"),
        "arith.ori": binary("or"),
        "arith.remsi": binary("srem"),
        "arith.remui": binary("urem"),
        "arith.select": select,
        "arith.shli": shift("shl"),
        "arith.shrsi": shift("ashr"),
        "arith.shrui": shift("lshr"),
        "arith.subi": binary("sub"),
        "arith.trunci": resized("zext"),
        "arith.xori": binary("xor"),
        "math.absi": intrinsic("abs", "i1 false"),
        "math.ctlz": intrinsic("ctlz", "i1 false"),
        "math.ctpop": intrinsic("ctpop"),
        "math.cttz": intrinsic("cttz", "i1 false"),
    }
)
