"""The dialect ``xtile``: an entry function per tile, tiles that are read, written and masked.

Mirrors xtile_ops.td of XLA. A tile may overhang its buffer: what is read there is undefined, nothing is written there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.dialects import builtin
from xdsl.dialects.builtin import DenseArrayBase, IndexType, MemRefType, TensorType
from xdsl.dialects.utils import parse_func_op_like, print_func_op_like
from xdsl.ir import Attribute, Block, Data, Dialect, Region, SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap
from xdsl.irdl import (
    IRDLOperation,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import AttrParser, Parser
from xdsl.printer import Printer
from xdsl.traits import IsolatedFromAbove, IsTerminator, Pure

from shardy_py.kernels.dialect.types import INDEX, parse_indices, print_values


@irdl_attr_definition
class LayoutAttr(builtin.MemRefLayoutAttr, Data[tuple[int, ...]]):
    """The dimensions of a buffer, the one that varies fastest first: ``#xtile.layout<[1, 0]>``."""

    name = "xtile.layout"

    def get_affine_map(self) -> AffineMap:
        """Return the map to the index in memory, slowest dimension first."""
        count = len(self.data)
        return AffineMap(count, 0, tuple(AffineExpr.dimension(number) for number in reversed(self.data)))

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> tuple[int, ...]:
        """Read the list."""
        with parser.in_angle_brackets():
            return tuple(parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_integer))

    def print_parameter(self, printer: Printer) -> None:
        """Write the list."""
        with printer.in_angle_brackets():
            printer.print_string(str(list(self.data)))


@irdl_attr_definition
class TilingInfoAttr(Data[tuple[int, int]]):
    """The number of tiles, and of those that one block computes: ``<tile_count:6, tiles_per_workgroup:1>``."""

    name = "xtile.tiling_info"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> tuple[int, int]:
        """Read both numbers."""
        with parser.in_angle_brackets():
            parser.parse_keyword("tile_count")
            parser.parse_punctuation(":")
            count = parser.parse_integer()
            parser.parse_punctuation(",")
            parser.parse_keyword("tiles_per_workgroup")
            parser.parse_punctuation(":")
            return count, parser.parse_integer()

    def print_parameter(self, printer: Printer) -> None:
        """Write both numbers."""
        with printer.in_angle_brackets():
            printer.print_string("tile_count:{}, tiles_per_workgroup:{}".format(*self.data))


@irdl_op_definition
class EntryFuncOp(IRDLOperation):
    """The function of one tile: buffers of the parameters and of the results, then the number of the tile."""

    name = "xtile.entry_func"

    sym_name = prop_def(builtin.StringAttr)
    function_type = prop_def(builtin.FunctionType)
    num_opaque_args = prop_def(builtin.IntegerAttr)
    body = region_def("single_block")
    traits = traits_def(IsolatedFromAbove())

    def __init__(self, name: str, types: Sequence[Attribute], tiling: tuple[int, int]) -> None:
        super().__init__(
            properties={
                "sym_name": builtin.StringAttr(name),
                "function_type": builtin.FunctionType.from_lists([*types, INDEX], []),
                "num_opaque_args": builtin.IntegerAttr(0, builtin.i32),
            },
            attributes={TilingInfoAttr.name: TilingInfoAttr(tiling)},
            regions=[Region(Block(arg_types=[*types, INDEX]))],
        )

    def print(self, printer: Printer) -> None:
        """Write the op like a function."""
        attributes = {"num_opaque_args": self.num_opaque_args, **self.attributes}
        print_func_op_like(printer, self.sym_name, self.function_type, self.body, attributes, reserved_attr_names=())

    @classmethod
    def parse(cls, parser: Parser) -> EntryFuncOp:
        """Read the op like a function."""
        name, inputs, outputs, body, extra, *_ = parse_func_op_like(parser, reserved_attr_names=())
        attributes = {} if extra is None else dict(extra.data)
        properties = {
            "sym_name": builtin.StringAttr(name),
            "function_type": builtin.FunctionType.from_lists(list(inputs), list(outputs)),
            "num_opaque_args": attributes.pop("num_opaque_args", builtin.IntegerAttr(0, builtin.i32)),
        }
        return cls.create(properties=properties, attributes=attributes, regions=[body])


@irdl_op_definition
class TileReturnOp(IRDLOperation):
    """The end of an entry function."""

    name = "xtile.return"

    traits = traits_def(IsTerminator())
    assembly_format = "attr-dict"


def _numbers(values: Sequence[int]) -> DenseArrayBase[Any]:
    return DenseArrayBase.from_list(builtin.i64, list(values))


class _Windowed(IRDLOperation):
    """An op whose tile has a shape, and strides in a buffer."""

    full_tile_shape = prop_def(DenseArrayBase)
    strides = prop_def(DenseArrayBase)


def _print_window(printer: Printer, op: TileExtractOp | TileInsertOp, source: Attribute, target: Attribute) -> None:
    """Write ``[offsets] [shape] [strides] : source -> target``."""
    print_values(printer, op.offsets, "[", "]")
    for numbers in (op.full_tile_shape, op.strides):
        printer.print_string(f" {list(numbers.get_values())}")
    printer.print_string(" : ")
    printer.print_attribute(source)
    printer.print_string(" -> ")
    printer.print_attribute(target)


def _parse_window(parser: Parser) -> tuple[Sequence[SSAValue], list[int], list[int]]:
    """Read ``[offsets] [shape] [strides]``."""
    offsets = parse_indices(parser)
    square = Parser.Delimiter.SQUARE
    shape, strides = (parser.parse_comma_separated_list(square, parser.parse_integer) for _ in range(2))
    return offsets, shape, strides


@irdl_op_definition
class TileExtractOp(_Windowed):
    """A tile of a buffer."""

    name = "xtile.extract"

    source = operand_def(MemRefType)
    offsets = var_operand_def(IndexType)
    result = result_def(TensorType)
    traits = traits_def(Pure())

    def __init__(
        self, source: SSAValue, offsets: Sequence[SSAValue], shape: Sequence[int], strides: Sequence[int], type_: Any
    ) -> None:
        properties = {"full_tile_shape": _numbers(shape), "strides": _numbers(strides)}
        super().__init__(operands=[source, list(offsets)], result_types=[type_], properties=properties)

    def print(self, printer: Printer) -> None:
        """Write ``%m[offsets] [shape] [strides] : memref<...> -> tensor<...>``."""
        printer.print_string(" ")
        printer.print_ssa_value(self.source)
        _print_window(printer, self, self.source.type, self.result.type)

    @classmethod
    def parse(cls, parser: Parser) -> TileExtractOp:
        """Read what `print` writes."""
        source = parser.parse_unresolved_operand()
        window = _parse_window(parser)
        parser.parse_punctuation(":")
        type_ = parser.parse_type()
        parser.parse_punctuation("->")
        return cls(parser.resolve_operand(source, type_), *window, parser.parse_type())


@irdl_op_definition
class TileInsertOp(_Windowed):
    """Write a tile to a buffer, where it does not overhang."""

    name = "xtile.insert"

    source = operand_def(TensorType)
    destination = operand_def(MemRefType)
    offsets = var_operand_def(IndexType)

    def __init__(
        self,
        source: SSAValue,
        destination: SSAValue,
        offsets: Sequence[SSAValue],
        shape: Sequence[int],
        strides: Sequence[int],
    ) -> None:
        properties = {"full_tile_shape": _numbers(shape), "strides": _numbers(strides)}
        super().__init__(operands=[source, destination, list(offsets)], properties=properties)

    def print(self, printer: Printer) -> None:
        """Write ``%t into %m[offsets] [shape] [strides] : tensor<...> -> memref<...>``."""
        print_values(printer, [self.source], " ", " into ")
        printer.print_ssa_value(self.destination)
        _print_window(printer, self, self.source.type, self.destination.type)

    @classmethod
    def parse(cls, parser: Parser) -> TileInsertOp:
        """Read what `print` writes."""
        source = parser.parse_unresolved_operand()
        parser.parse_keyword("into")
        destination = parser.parse_unresolved_operand()
        window = _parse_window(parser)
        parser.parse_punctuation(":")
        type_ = parser.parse_type()
        parser.parse_punctuation("->")
        content = parser.resolve_operand(source, type_)
        return cls(content, parser.resolve_operand(destination, parser.parse_type()), *window)


@irdl_op_definition
class MaskOp(IRDLOperation):
    """A tile whose elements at and behind the bounds are another value."""

    name = "xtile.mask"

    source = operand_def(TensorType)
    value = operand_def()
    bounds = prop_def(DenseArrayBase)
    result = result_def(TensorType)
    traits = traits_def(Pure())

    def __init__(self, source: SSAValue, bounds: Sequence[int], value: SSAValue) -> None:
        properties = {"bounds": _numbers(bounds)}
        super().__init__(operands=[source, value], result_types=[source.type], properties=properties)

    def print(self, printer: Printer) -> None:
        """Write ``%t bounds [10], %v : tensor<...>``."""
        print_values(printer, [self.source], " ", f" bounds {list(self.bounds.get_values())}, ")
        printer.print_ssa_value(self.value)
        printer.print_string(" : ")
        printer.print_attribute(self.result.type)

    @classmethod
    def parse(cls, parser: Parser) -> MaskOp:
        """Read what `print` writes."""
        source = parser.parse_unresolved_operand()
        parser.parse_keyword("bounds")
        bounds = parser.parse_comma_separated_list(Parser.Delimiter.SQUARE, parser.parse_integer)
        parser.parse_punctuation(",")
        value = parser.parse_unresolved_operand()
        parser.parse_punctuation(":")
        type_ = parser.parse_type()
        if not isinstance(type_, TensorType):
            parser.raise_error("a tensor type is expected")
        return cls(parser.resolve_operand(source, type_), bounds, parser.resolve_operand(value, type_.element_type))


XTILE = Dialect("xtile", [EntryFuncOp, TileReturnOp, TileExtractOp, TileInsertOp, MaskOp], [LayoutAttr, TilingInfoAttr])
