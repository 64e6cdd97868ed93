"""Ops of the dialects ``arith`` and ``llvm`` that xDSL does not have."""

from __future__ import annotations

from typing import Any, ClassVar

from xdsl.dialects import arith, llvm
from xdsl.dialects.builtin import IndexType, IntegerAttr, IntegerType, StringAttr, UnitAttr, i1, i64
from xdsl.ir import Attribute, Data, Dialect, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    base,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.parser import AttrParser, Parser
from xdsl.printer import Printer
from xdsl.traits import Pure

_INDEX_OR_INTEGER = base(IndexType) | base(IntegerType)


@irdl_op_definition
class IndexCastUIOp(IRDLOperation):
    """An index as an integer without a sign, or the other way round."""

    name = "arith.index_castui"

    input = operand_def(_INDEX_OR_INTEGER)
    result = result_def(_INDEX_OR_INTEGER)
    assembly_format: ClassVar[str] = "$input attr-dict `:` type($input) `to` type($result)"
    traits = traits_def(Pure())

    def __init__(self, input: SSAValue, type_: Attribute) -> None:
        super().__init__(operands=[input], result_types=[type_])


@irdl_op_definition
class RemFOp(arith.FloatingPointLikeBinaryOperation):
    """The remainder of floats, with the sign of the dividend."""

    name = "arith.remf"
    traits = traits_def(Pure())


_KNOWN_ARITH = {op.name for op in arith.Arith.operations}
_MISSING_ARITH = [op for op in (IndexCastUIOp, RemFOp) if op.name not in _KNOWN_ARITH]
ARITH = Dialect("arith", [*arith.Arith.operations, *_MISSING_ARITH], [*arith.Arith.attributes])


DEVICE = "device"
"""The scope of updates that all threads of a kernel see, and no other device needs to."""

ORDERINGS = ("not_atomic", "unordered", "monotonic", "acquire", "release", "acq_rel", "seq_cst")

_WORDS = ("monotonic", "monotonic")

# As MLIR numbers them.
KINDS = (
    *("xchg", "add", "sub", "_and", "nand", "_or", "_xor", "max", "min", "umax", "umin"),
    *("fadd", "fsub", "fmax", "fmin"),
)


# xDSL neither writes nor reads the ordering of loads and stores.
_ATOMIC = "atomic"


def atomic_load(pointer: SSAValue, type_: Attribute, size: int) -> llvm.LoadOp:
    """Return an op that reads an element as a whole among atomic updates.

    Args:
        pointer: The place.
        type_: The type of the element.
        size: Its bytes.
    """
    op = llvm.LoadOp(pointer, type_, size, ORDERINGS.index("monotonic"))
    op.attributes[_ATOMIC] = UnitAttr()
    return op


def atomic_store(value: SSAValue, pointer: SSAValue, size: int) -> llvm.StoreOp:
    """Return an op that writes an element as a whole among atomic updates.

    Args:
        value: The element.
        pointer: The place.
        size: The bytes of the element.
    """
    op = llvm.StoreOp(value, pointer, size, ORDERINGS.index("unordered"))
    op.attributes[_ATOMIC] = UnitAttr()
    return op


def is_atomic(op: llvm.LoadOp | llvm.StoreOp) -> bool:
    """Return whether a load or a store is one of a whole element among atomic updates."""
    return _ATOMIC in op.attributes


def _enum(number: int) -> IntegerAttr[Any]:
    return IntegerAttr(number, i64)


@irdl_op_definition
class LLVMAtomicRMWOp(IRDLOperation):
    """The element before an update by one operation, which other threads see as a whole."""

    name = "llvm.atomicrmw"

    bin_op = prop_def(IntegerAttr)
    ordering = prop_def(IntegerAttr)
    syncscope = opt_prop_def(StringAttr)
    ptr = operand_def(llvm.LLVMPointerType)
    value = operand_def()
    result = result_def()

    def __init__(self, kind: str, pointer: SSAValue, value: SSAValue) -> None:
        properties = {
            "bin_op": _enum(KINDS.index(kind)),
            "ordering": _enum(ORDERINGS.index("monotonic")),
            "syncscope": StringAttr(DEVICE),
        }
        super().__init__(operands=[pointer, value], result_types=[value.type], properties=properties)

    @property
    def kind(self) -> str:
        """The operation, as MLIR names it."""
        return KINDS[self.bin_op.value.data]

    def print(self, printer: Printer) -> None:
        """Write ``fadd %pointer, %value syncscope("device") monotonic : !llvm.ptr, f32``."""
        printer.print_string(f" {self.kind} ")
        printer.print_list(self.operands, printer.print_ssa_value)
        _print_scope(printer, self.syncscope)
        printer.print_string(f" {ORDERINGS[self.ordering.value.data]} : ")
        printer.print_list(self.operand_types, printer.print_attribute)

    @classmethod
    def parse(cls, parser: Parser) -> LLVMAtomicRMWOp:
        """Read what `print` writes."""
        kind = parser.parse_identifier()
        if kind not in KINDS:
            parser.raise_error(f"one of {', '.join(KINDS)} is expected")
        position = parser.pos
        operands = parser.parse_comma_separated_list(Parser.Delimiter.NONE, parser.parse_unresolved_operand)
        _parse_scope(parser)
        parser.parse_keyword("monotonic")
        parser.parse_punctuation(":")
        types = parser.parse_comma_separated_list(Parser.Delimiter.NONE, parser.parse_type)
        return cls(kind, *parser.resolve_operands(operands, types, position))


@irdl_op_definition
class CompareExchangeOp(IRDLOperation):
    """The element before, and whether it was the expected one and so is the new one now."""

    name = "llvm.cmpxchg"

    success_ordering = prop_def(IntegerAttr)
    failure_ordering = prop_def(IntegerAttr)
    syncscope = opt_prop_def(StringAttr)
    ptr = operand_def(llvm.LLVMPointerType)
    expected = operand_def()
    value = operand_def()
    result = result_def(llvm.LLVMStructType)

    def __init__(self, pointer: SSAValue, expected: SSAValue, value: SSAValue) -> None:
        properties = {
            "success_ordering": _enum(ORDERINGS.index("monotonic")),
            "failure_ordering": _enum(ORDERINGS.index("monotonic")),
            "syncscope": StringAttr(DEVICE),
        }
        result = llvm.LLVMStructType.from_type_list([value.type, i1])
        super().__init__(operands=[pointer, expected, value], result_types=[result], properties=properties)

    def print(self, printer: Printer) -> None:
        """Write ``%pointer, %expected, %value syncscope("device") monotonic monotonic : !llvm.ptr, i32``."""
        printer.print_string(" ")
        printer.print_list(self.operands, printer.print_ssa_value)
        _print_scope(printer, self.syncscope)
        printer.print_string(f" {' '.join(_WORDS)} : ")
        printer.print_list((self.ptr.type, self.value.type), printer.print_attribute)

    @classmethod
    def parse(cls, parser: Parser) -> CompareExchangeOp:
        """Read what `print` writes."""
        position = parser.pos
        operands = parser.parse_comma_separated_list(Parser.Delimiter.NONE, parser.parse_unresolved_operand)
        _parse_scope(parser)
        for word in _WORDS:
            parser.parse_keyword(word)
        parser.parse_punctuation(":")
        pointer, value = parser.parse_comma_separated_list(Parser.Delimiter.NONE, parser.parse_type)
        return cls(*parser.resolve_operands(operands, [pointer, value, value], position))


def _print_scope(printer: Printer, scope: StringAttr | None) -> None:
    if scope is not None:
        printer.print_string(f' syncscope("{scope.data}")')


def _parse_scope(parser: Parser) -> None:
    parser.parse_keyword("syncscope")
    parser.parse_punctuation("(")
    parser.parse_str_literal()
    parser.parse_punctuation(")")


@irdl_attr_definition
class ConstantRangeAttr(Data[tuple[int, int, int]]):
    """``#llvm.constant_range<i32, 0, 128>``: the bits, the least value, the one behind the greatest."""

    name = "llvm.constant_range"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> tuple[int, int, int]:
        """Read ``<i32, 0, 128>``."""
        with parser.in_angle_brackets():
            type_ = parser.parse_type()
            parser.parse_punctuation(",")
            low = parser.parse_integer()
            parser.parse_punctuation(",")
            high = parser.parse_integer()
        if not isinstance(type_, IntegerType):
            parser.raise_error("an integer type is expected")
        return type_.width.data, low, high

    def print_parameter(self, printer: Printer) -> None:
        """Write ``<i32, 0, 128>``."""
        bits, low, high = self.data
        with printer.in_angle_brackets():
            printer.print_string(f"i{bits}, {low}, {high}")


_KNOWN_LLVM = {op.name for op in llvm.LLVM.operations}
_MISSING_LLVM = [op for op in (LLVMAtomicRMWOp, CompareExchangeOp) if op.name not in _KNOWN_LLVM]
LLVM = Dialect("llvm", [*llvm.LLVM.operations, *_MISSING_LLVM], [*llvm.LLVM.attributes, ConstantRangeAttr])
