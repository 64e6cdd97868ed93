"""Ops of the dialect ``gpu`` that kernels use, in the text form that MLIR writes."""

from __future__ import annotations

from typing import ClassVar, Self

from xdsl.dialects import gpu as xdsl_gpu
from xdsl.dialects.builtin import I1, I32, AnyFloat, IndexType, i1, i32
from xdsl.dialects.gpu import DimensionAttr, DimensionEnum
from xdsl.dialects.utils import EnumAttribute
from xdsl.ir import Attribute, Data, Dialect, SpacedOpaqueSyntaxAttribute, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.parser import AttrParser, Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.str_enum import StrEnum

from shardy_py.errors import Diagnostic, UnsupportedError

INDEX = IndexType()
DIMENSIONS = ("x", "y", "z")


class _IdOp(IRDLOperation):
    """The number of a thread or a block along one dimension."""

    dimension = prop_def(DimensionAttr)
    output = result_def(IndexType)

    def __init__(self, dimension: str, attributes: dict[str, Attribute] | None = None) -> None:
        properties = {"dimension": DimensionAttr(DimensionEnum(dimension))}
        super().__init__(result_types=[INDEX], properties=properties, attributes=dict(attributes or {}))

    def print(self, printer: Printer) -> None:
        """Write the dimension: ``gpu.thread_id x``."""
        printer.print_string(f" {self.dimension.data.value}")
        printer.print_op_attributes(self.attributes)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Read ``x {xla.range = ...}``."""
        dimension = parser.parse_identifier()
        if dimension not in DIMENSIONS:
            parser.raise_error("x, y or z is expected")
        return cls(dimension, dict(parser.parse_optional_attr_dict()))


@irdl_op_definition
class ThreadIdOp(_IdOp):
    """The number of the thread in its block."""

    name = "gpu.thread_id"
    traits = traits_def(Pure())


@irdl_op_definition
class BlockIdOp(_IdOp):
    """The number of the block in the grid."""

    name = "gpu.block_id"
    traits = traits_def(Pure())


@irdl_op_definition
class BlockDimOp(_IdOp):
    """The number of threads of a block along one dimension."""

    name = "gpu.block_dim"
    traits = traits_def(Pure())


@irdl_op_definition
class GridDimOp(_IdOp):
    """The number of blocks along one dimension."""

    name = "gpu.grid_dim"
    traits = traits_def(Pure())


@irdl_op_definition
class LaneIdOp(IRDLOperation):
    """The number of the thread in its warp."""

    name = "gpu.lane_id"
    result = result_def(IndexType)
    assembly_format: ClassVar[str] = "attr-dict"
    traits = traits_def(Pure())


@irdl_op_definition
class BarrierOp(IRDLOperation):
    """A barrier for the threads of a block."""

    name = "gpu.barrier"
    assembly_format: ClassVar[str] = "attr-dict"


class ShuffleMode(StrEnum):
    """The lane from which a lane takes a value: the one with this number, or some places up or down, or by ``xor``."""

    XOR = "xor"
    UP = "up"
    DOWN = "down"
    IDX = "idx"


@irdl_attr_definition
class ShuffleModeAttr(EnumAttribute[ShuffleMode], SpacedOpaqueSyntaxAttribute):
    """The mode of an exchange: ``#gpu<shuffle_mode down>``."""

    name = "gpu.shuffle_mode"


@irdl_op_definition
class ShuffleOp(IRDLOperation):
    """The value of another lane, and whether there is one; kernels take that of a lane some places further down."""

    name = "gpu.shuffle"

    value = operand_def(AnyFloat | I32)
    offset = operand_def(I32)
    width = operand_def(I32)
    result = result_def()
    valid = result_def(I1)
    mode = prop_def(ShuffleModeAttr)

    def __init__(
        self, value: SSAValue, offset: SSAValue, width: SSAValue, mode: ShuffleMode = ShuffleMode.DOWN
    ) -> None:
        super().__init__(
            operands=[value, offset, width],
            result_types=[value.type, i1],
            properties={"mode": ShuffleModeAttr(mode)},
        )

    def print(self, printer: Printer) -> None:
        """Write ``down %value, %offset, %width : type``."""
        printer.print_string(f" {mode_of(self).value} ")
        printer.print_list(self.operands, printer.print_ssa_value)
        printer.print_string(" : ")
        printer.print_attribute(self.value.type)

    @classmethod
    def parse(cls, parser: Parser) -> ShuffleOp:
        """Read ``down %value, %offset, %width : type``."""
        mode = parser.parse_str_enum(ShuffleMode)
        position = parser.pos
        operands = parser.parse_comma_separated_list(Parser.Delimiter.NONE, parser.parse_unresolved_operand)
        parser.parse_punctuation(":")
        type_ = parser.parse_type()
        value, offset, width = parser.resolve_operands(operands, [type_, i32, i32], position)
        return cls(value, offset, width, mode)


def mode_of(op: ShuffleOp) -> ShuffleMode:
    """Return the mode of an exchange.

    Raises:
        UnsupportedError: the op has none; MLIR does not know a default.
    """
    mode = op.properties.get("mode")
    if not isinstance(mode, ShuffleModeAttr):
        raise _mode_problem(op, "no mode")
    return mode.data


def check_takes_from_below(op: ShuffleOp) -> None:
    """Check that lanes take values from lanes further down, as in all kernels that are emitted.

    Raises:
        UnsupportedError: the op has another mode, or none.
    """
    if mode_of(op) is not ShuffleMode.DOWN:
        raise _mode_problem(op, f"mode {mode_of(op).value}")


def _mode_problem(op: ShuffleOp, mode: str) -> UnsupportedError:
    hint = "write the op with mode = #gpu<shuffle_mode down>"
    message = f"kernels exchange values with lanes further down, in mode down; the op has {mode}"
    return UnsupportedError(Diagnostic("shuffle-mode", message, op=op.name, hint=hint))


class MappingAttr(Data[str]):
    """A dimension of the grid to which one of a loop is mapped."""

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> str:
        """Read ``<x>``."""
        with parser.in_angle_brackets():
            dimension = parser.parse_identifier()
        if dimension not in DIMENSIONS:
            parser.raise_error("x, y or z is expected")
        return dimension

    def print_parameter(self, printer: Printer) -> None:
        """Write ``<x>``."""
        with printer.in_angle_brackets():
            printer.print_string(self.data)


@irdl_attr_definition
class ThreadMappingAttr(MappingAttr):
    """``#gpu.thread<x>``: the number of a thread in its block."""

    name = "gpu.thread"


@irdl_attr_definition
class BlockMappingAttr(MappingAttr):
    """``#gpu.block<x>``: the number of a block."""

    name = "gpu.block"


GPU = Dialect(
    "gpu",
    [
        *(ThreadIdOp, BlockIdOp, BlockDimOp, GridDimOp, LaneIdOp, BarrierOp, ShuffleOp),
        *(xdsl_gpu.FuncOp, xdsl_gpu.ModuleOp, xdsl_gpu.ReturnOp),
    ],
    [DimensionAttr, ShuffleModeAttr, ThreadMappingAttr, BlockMappingAttr],
)
