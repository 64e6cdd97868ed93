"""Pieces of text that several ops of the dialect share."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IndexType, TensorType
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import IRDLOperation
from xdsl.parser import Parser
from xdsl.printer import Printer

from shardy_py.indexing import IndexingMap
from shardy_py.kernels.dialect.attributes import IndexingMapAttr

INDEX = IndexType()


def print_values(printer: Printer, values: Sequence[SSAValue], opening: str, closing: str) -> None:
    """Write values between brackets."""
    printer.print_string(opening)
    printer.print_list(values, printer.print_ssa_value)
    printer.print_string(closing)


def print_rest(printer: Printer, op: IRDLOperation, *shown: str) -> None:
    """Write the attributes of an op that its text does not show otherwise."""
    printer.print_op_attributes(op.attributes, reserved_attr_names=shown)


def parse_map(parser: Parser) -> IndexingMap:
    """Read an indexing map."""
    attribute = parser.parse_attribute()
    if not isinstance(attribute, IndexingMapAttr):
        parser.raise_error("an indexing map is expected")
    return attribute.data


def parse_indices(parser: Parser) -> Sequence[SSAValue]:
    """Read the index of an element."""
    position = parser.pos
    operands = parser.parse_comma_separated_list(Parser.Delimiter.SQUARE, parser.parse_unresolved_operand)
    return parser.resolve_operands(operands, [INDEX] * len(operands), position)


def parse_tensor_type(parser: Parser) -> TensorType[Attribute]:
    """Read the type of a tensor behind a colon."""
    parser.parse_punctuation(":")
    type_ = parser.parse_type()
    if not isinstance(type_, TensorType):
        parser.raise_error("a tensor type is expected")
    return type_
