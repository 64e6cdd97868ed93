"""Ops of the dialect ``nvvm`` that kernels in the form for LLVM use: numbers of threads, barriers, other lanes."""

from __future__ import annotations

from itertools import product

from xdsl.dialects.builtin import I32, i32
from xdsl.ir import Attribute, Data, Dialect, SpacedOpaqueSyntaxAttribute
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import AttrParser, Parser
from xdsl.printer import Printer
from xdsl.traits import Pure

from shardy_py.kernels.dialect.arith_and_llvm import ConstantRangeAttr
from shardy_py.kernels.dialect.gpu import DIMENSIONS, ShuffleMode

REGISTERS = ("tid", "ctaid", "ntid", "nctaid")
_PREFIX = "nvvm.read.ptx.sreg"
LANE, WARP_SIZE = f"{_PREFIX}.laneid", f"{_PREFIX}.warpsize"
KINDS = {"bfly": ShuffleMode.XOR, "up": ShuffleMode.UP, "down": ShuffleMode.DOWN, "idx": ShuffleMode.IDX}


class SpecialRegisterOp(IRDLOperation):
    """The content of a special register: the number of a thread, of its block, or how many there are."""

    range = opt_prop_def(ConstantRangeAttr)
    res = result_def(I32)
    traits = traits_def(Pure())

    @property
    def register(self) -> str:
        """The register, without its dimension: ``tid``."""
        return self.name.removeprefix(f"{_PREFIX}.").partition(".")[0]

    @property
    def dimension(self) -> int:
        """The number of the dimension."""
        return DIMENSIONS.index(self.name.rpartition(".")[2])

    def print(self, printer: Printer) -> None:
        """Write ``range <i32, 0, 128> : i32``."""
        if self.range is not None:
            printer.print_string(" range ")
            self.range.print_parameter(printer)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : i32")

    @classmethod
    def parse(cls, parser: Parser) -> SpecialRegisterOp:
        """Read ``range <i32, 0, 128> : i32``."""
        properties: dict[str, Attribute] = {}
        if parser.parse_optional_keyword("range"):
            properties["range"] = ConstantRangeAttr(ConstantRangeAttr.parse_parameter(parser))
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        return cls.build(result_types=[parser.parse_type()], properties=properties, attributes=attributes)


def _register_op(register: str) -> type[SpecialRegisterOp]:
    @irdl_op_definition
    class RegisterOp(SpecialRegisterOp):
        """The content of one register."""

        name = register

    return RegisterOp


REGISTER_OPS = tuple(
    _register_op(name)
    for name in (*(f"{_PREFIX}.{register}.{end}" for register, end in product(REGISTERS, DIMENSIONS)), LANE, WARP_SIZE)
)


@irdl_op_definition
class Barrier0Op(IRDLOperation):
    """A barrier for the threads of a block, as MLIR named it before 2026."""

    name = "nvvm.barrier0"
    assembly_format = "attr-dict"


@irdl_op_definition
class NvvmBarrierOp(IRDLOperation):
    """A barrier for the threads of a block."""

    name = "nvvm.barrier"

    barrier_id = var_operand_def()
    thread_count = var_operand_def()
    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    def print(self, printer: Printer) -> None:
        """Write attributes; a barrier of all threads has no operands."""
        printer.print_op_attributes(self.attributes)

    @classmethod
    def parse(cls, parser: Parser) -> NvvmBarrierOp:
        """Read attributes."""
        return cls.build(operands=[[], []], attributes=parser.parse_optional_attr_dict())


@irdl_attr_definition
class ShuffleKindAttr(Data[str], SpacedOpaqueSyntaxAttribute):
    """The lane from which a lane takes a value: ``#nvvm<shfl_kind bfly>``."""

    name = "nvvm.shfl_kind"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> str:
        """Read ``bfly``."""
        kind = parser.parse_identifier()
        if kind not in KINDS:
            parser.raise_error(f"one of {', '.join(KINDS)} is expected")
        return kind

    def print_parameter(self, printer: Printer) -> None:
        """Write ``bfly``."""
        printer.print_string(self.data)


@irdl_op_definition
class NvvmShuffleOp(IRDLOperation):
    """The value of another lane; the own one where there is none."""

    name = "nvvm.shfl.sync"

    thread_mask = operand_def(I32)
    value = operand_def()
    offset = operand_def(I32)
    mask_and_clamp = operand_def(I32)
    res = result_def()
    kind = prop_def(ShuffleKindAttr)

    def print(self, printer: Printer) -> None:
        """Write ``bfly %mask, %value, %offset, %clamp : f32 -> f32``."""
        printer.print_string(f" {self.kind.data} ")
        printer.print_list(self.operands, printer.print_ssa_value)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.value.type)
        printer.print_string(" -> ")
        printer.print_attribute(self.res.type)

    @classmethod
    def parse(cls, parser: Parser) -> NvvmShuffleOp:
        """Read what `print` writes."""
        kind = ShuffleKindAttr(ShuffleKindAttr.parse_parameter(parser))
        position = parser.pos
        operands = parser.parse_comma_separated_list(Parser.Delimiter.NONE, parser.parse_unresolved_operand)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        type_ = parser.parse_type()
        parser.parse_punctuation("->")
        result = parser.parse_type()
        values = parser.resolve_operands(operands, [i32, type_, i32, i32], position)
        return cls.build(operands=values, result_types=[result], properties={"kind": kind}, attributes=attributes)


NVVM = Dialect("nvvm", [*REGISTER_OPS, Barrier0Op, NvvmBarrierOp, NvvmShuffleOp], [ShuffleKindAttr])
