"""Types and attributes of kernels, and the text that several ops of the dialect share."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from xdsl.dialects import builtin
from xdsl.dialects.builtin import IndexType, IntegerAttr
from xdsl.ir import Attribute, Data, SSAValue
from xdsl.irdl import IRDLOperation, irdl_attr_definition
from xdsl.parser import AttrParser, Parser, UnresolvedOperand
from xdsl.printer import Printer

from shardy_py.errors import Diagnostic, ParseError, UnsupportedError
from shardy_py.indexing import IndexingMap
from shardy_py.indexing.expressions import divides_by_zero
from shardy_py.ir.graph.program import Value
from shardy_py.ir.graph.types import TensorType, static_shape

_SMALL_FLOATS = (
    *(builtin.f8E3M4, builtin.f8E4M3, builtin.f8E4M3B11FNUZ, builtin.f8E4M3FN, builtin.f8E4M3FNUZ),
    *(builtin.f8E5M2, builtin.f8E5M2FNUZ, builtin.f8E8M0FNU, builtin.f4E2M1FN),
)
_FLOATS = {str(type_): type_ for type_ in (builtin.bf16, builtin.f16, builtin.f32, builtin.f64, *_SMALL_FLOATS)}


def scalar_type(dtype: str) -> Attribute:
    """Return the type of a value of a kernel; booleans of tensors are bytes, integers have no sign.

    Raises:
        UnsupportedError: kernels have no such type.
    """
    if dtype in _FLOATS:
        return _FLOATS[dtype]
    if dtype == "index":
        return builtin.IndexType()
    if dtype.startswith("complex<"):
        part: Any = scalar_type(dtype[len("complex<") : -1])
        return builtin.ComplexType(part)
    digits = dtype.lstrip("sui")
    if dtype[:1] in ("i", "s", "u") and digits.isdigit():
        return builtin.IntegerType(int(digits))
    raise UnsupportedError(Diagnostic("element-type", f"kernels have no elements of type {dtype}"))


def small_float(type_: Attribute) -> builtin.ReducedPrecisionFloatType | None:
    """Return a type if it is one of floats of 8 or 4 bits, which are computed with as ``f32``.

    >>> [small_float(type_) is not None for type_ in (builtin.f8E4M3FN, builtin.f16, builtin.f4E2M1FN)]
    [True, False, True]
    """
    return type_ if type_ in _SMALL_FLOATS else None


def is_small_float(dtype: str) -> bool:
    """Return whether a type, in MLIR's notation, is one of floats of 8 or 4 bits."""
    return dtype in _FLOATS and small_float(_FLOATS[dtype]) is not None


def element_dtype(value: Value) -> str:
    """Return the type of a tensor's elements in a kernel, in MLIR's notation."""
    dtype = value.type.element_type if isinstance(value.type, TensorType) else str(value.type)
    if dtype == "i1":
        return "i8"
    return dtype[1:] if dtype.startswith(("ui", "si")) else dtype


def tensor_type(value: Value, layout: Sequence[int] = ()) -> builtin.TensorType[Attribute]:
    """Return the type of a tensor in a kernel.

    Args:
        value: The tensor.
        layout: Its dimensions, the one that varies fastest in memory first; it is the encoding of the type where it is
            not row-major.
    """
    shape = static_shape(value.type) or ()
    element = scalar_type(element_dtype(value))
    if list(layout) == sorted(layout, reverse=True):
        return builtin.TensorType(element, shape)
    vector = builtin.TensorType(builtin.i64, [len(layout)])
    return builtin.TensorType(element, shape, builtin.DenseIntOrFPElementsAttr.from_list(vector, list(layout)))


def layout_of_type(type_: builtin.TensorType[Attribute]) -> tuple[int, ...]:
    """Return the dimensions of a tensor, the one that varies fastest in memory first."""
    if isinstance(type_.encoding, builtin.DenseIntOrFPElementsAttr):
        return type_.encoding.get_values()
    return tuple(range(len(type_.get_shape()) - 1, -1, -1))


def memory_strides(type_: builtin.TensorType[Attribute]) -> tuple[int, ...]:
    """Return the distance in memory of neighbours along each dimension, in elements.

    >>> memory_strides(builtin.TensorType(builtin.f32, [2, 3, 4]))
    (12, 4, 1)
    """
    shape = type_.get_shape()
    strides, step = [0] * len(shape), 1
    for number in layout_of_type(type_):
        strides[number] = step
        step *= shape[number]
    return tuple(strides)


@irdl_attr_definition
class IndexingMapAttr(Data[IndexingMap]):
    """An indexing map: ``#xla_gpu.indexing_map<"(d0) -> (d0), domain: d0 in [0, 7]">``."""

    name = "xla_gpu.indexing_map"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> IndexingMap:
        """Read the text of the map, which may be cut into several strings."""
        with parser.in_angle_brackets():
            text = parser.parse_str_literal()
            while (more := parser.parse_optional_str_literal()) is not None:
                text += more
        parsed = IndexingMap.parse(text)
        if divides_by_zero((*parsed.results, *(expression for expression, _ in parsed.constraints))):
            raise ParseError(Diagnostic("malformed-indexing-map", "the indexing map divides by zero", excerpt=text))
        return parsed

    def print_parameter(self, printer: Printer) -> None:
        """Write the text of the map, divisions as ``floordiv``."""
        with printer.in_angle_brackets():
            printer.print_string_literal(self.data.print(spelling="floordiv"))


Triple = tuple[int, int, int]


@irdl_attr_definition
class LaunchGridAttr(Data[tuple[Triple, Triple]]):
    """``#xla_gpu.launch_grid<block_counts = [42, 1, 1], thread_counts = [128, 1, 1]>``: blocks, threads of a block."""

    name = "xla_gpu.launch_grid"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> tuple[Triple, Triple]:
        """Read both lists."""
        with parser.in_angle_brackets():
            blocks = _parse_counts(parser, "block_counts")
            parser.parse_punctuation(",")
            threads = _parse_counts(parser, "thread_counts")
        return blocks, threads

    def print_parameter(self, printer: Printer) -> None:
        """Write both lists."""
        blocks, threads = map(list, self.data)
        with printer.in_angle_brackets():
            printer.print_string(f"block_counts = {blocks}, thread_counts = {threads}")


def _parse_counts(parser: AttrParser, keyword: str) -> Triple:
    parser.parse_keyword(keyword)
    parser.parse_punctuation("=")
    counts = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_integer)
    if len(counts) != 3 or min(counts) < 1:
        parser.raise_error("three positive counts, along x, y and z, are expected")
    return counts[0], counts[1], counts[2]


INDEX = IndexType()


@lru_cache(maxsize=1 << 10)
def index_attribute(value: int) -> IntegerAttr[IndexType]:
    """Return an index as an attribute, the same one for equal numbers: xDSL checks each new one."""
    return IntegerAttr(value, INDEX)


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


def parse_indices(parser: Parser, delimiter: Parser.Delimiter = Parser.Delimiter.SQUARE) -> Sequence[SSAValue]:
    """Read the index of an element, or the dimensions of a map."""
    position = parser.pos
    operands = parser.parse_comma_separated_list(delimiter, parser.parse_unresolved_operand)
    return parser.resolve_operands(operands, [INDEX] * len(operands), position)


def parse_tensor_type(parser: Parser) -> builtin.TensorType[Attribute]:
    """Read the type of a tensor behind a colon."""
    parser.parse_punctuation(":")
    type_ = parser.parse_type()
    if not isinstance(type_, builtin.TensorType):
        parser.raise_error("a tensor type is expected")
    return type_


def print_carried(
    printer: Printer, keyword: str, arguments: Sequence[SSAValue], initial_values: Sequence[SSAValue]
) -> None:
    """Write ``iter_args(%a = %x) -> (f32)``: arguments of a body, the values that they begin with, and the types."""

    def assignment(pair: tuple[SSAValue, SSAValue]) -> None:
        printer.print_ssa_value(pair[0])
        printer.print_string(" = ")
        printer.print_ssa_value(pair[1])

    printer.print_string(f" {keyword}(")
    printer.print_list(zip(arguments, initial_values, strict=True), assignment)
    printer.print_string(") -> (")
    printer.print_list([value.type for value in initial_values], printer.print_attribute)
    printer.print_string(")")


def parse_carried(parser: Parser) -> list[tuple[Parser.UnresolvedArgument, UnresolvedOperand]]:
    """Read ``(%a = %x)``."""

    def assignment() -> tuple[Parser.UnresolvedArgument, UnresolvedOperand]:
        argument = parser.parse_argument(expect_type=False)
        parser.parse_punctuation("=")
        return argument, parser.parse_unresolved_operand()

    return parser.parse_comma_separated_list(Parser.Delimiter.PAREN, assignment)


def parse_arguments(parser: Parser, delimiter: Parser.Delimiter) -> list[Parser.UnresolvedArgument]:
    """Read arguments of a body, without their types."""
    return parser.parse_comma_separated_list(delimiter, lambda: parser.parse_argument(expect_type=False))
