"""Ops of the dialect ``xla_gpu`` on memory that threads share: tiles, barriers, lanes, writes under conditions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import (
    I1,
    IndexType,
    IntegerAttr,
    SymbolRefAttr,
    TensorType,
    VectorType,
    i1,
    i64,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    attr_def,
    irdl_op_definition,
    operand_def,
    region_def,
    result_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from shardy_py.kernels.dialect.types import (
    parse_indices,
    parse_tensor_type,
    print_values,
)


@irdl_op_definition
class AllocateSharedOp(IRDLOperation):
    """A tensor in the memory that the threads of a block share; its elements are undefined."""

    name = "xla_gpu.allocate_shared"

    output = result_def(TensorType)
    assembly_format: ClassVar[str] = "attr-dict `:` type($output)"

    def __init__(self, type_: TensorType[Attribute]) -> None:
        super().__init__(result_types=[type_])


@irdl_op_definition
class SyncThreadsOp(IRDLOperation):
    """A barrier for the threads of a block: tensors in, the same tensors as all threads have written them out."""

    name = "xla_gpu.sync_threads"

    tensors = var_operand_def(TensorType)
    outputs = var_result_def(TensorType)

    def __init__(self, *tensors: SSAValue | Operation) -> None:
        types = [SSAValue.get(value).type for value in tensors]
        super().__init__(operands=[list(tensors)], result_types=[types])

    def print(self, printer: Printer) -> None:
        """Write ``%t : tensor<...>``."""
        printer.print_string(" ")
        printer.print_list(self.tensors, printer.print_ssa_value)
        printer.print_string(" : ")
        printer.print_list(self.tensors.types, printer.print_attribute)

    @classmethod
    def parse(cls, parser: Parser) -> SyncThreadsOp:
        """Read ``%t : tensor<...>``."""
        position = parser.pos
        operands = parser.parse_comma_separated_list(Parser.Delimiter.NONE, parser.parse_unresolved_operand)
        parser.parse_punctuation(":")
        types = parser.parse_comma_separated_list(Parser.Delimiter.NONE, parser.parse_type)
        return cls(*parser.resolve_operands(operands, types, position))


@irdl_op_definition
class ShuffleReduceOp(IRDLOperation):
    """A reduction over lanes: for every distance from the largest down to 1, combine with the value of that lane."""

    name = "xla_gpu.shuffle_reduce"

    combiner = attr_def(SymbolRefAttr)
    max_distance = attr_def(IntegerAttr)
    arguments = var_operand_def()
    outputs = var_result_def()

    def __init__(self, arguments: Sequence[SSAValue | Operation], combiner: str, max_distance: int) -> None:
        types = [SSAValue.get(value).type for value in arguments]
        attributes = {"combiner": SymbolRefAttr(combiner), "max_distance": IntegerAttr(max_distance, i64)}
        super().__init__(operands=[list(arguments)], result_types=[types], attributes=attributes)

    def print(self, printer: Printer) -> None:
        """Write ``(%x) to 16 combiner=@f : f32``."""
        print_values(printer, self.arguments, "(", ")")
        printer.print_string(f" to {self.max_distance.value.data} combiner=")
        printer.print_attribute(self.combiner)
        printer.print_string(" : ")
        printer.print_list(self.arguments.types, printer.print_attribute)

    @classmethod
    def parse(cls, parser: Parser) -> ShuffleReduceOp:
        """Read ``(%x) to 16 combiner=@f : f32``."""
        position = parser.pos
        operands = parser.parse_comma_separated_list(Parser.Delimiter.PAREN, parser.parse_unresolved_operand)
        parser.parse_keyword("to")
        distance = parser.parse_integer()
        parser.parse_keyword("combiner")
        parser.parse_punctuation("=")
        combiner = parser.parse_symbol_name()
        parser.parse_punctuation(":")
        types = parser.parse_comma_separated_list(Parser.Delimiter.NONE, parser.parse_type)
        return cls(parser.resolve_operands(operands, types, position), combiner.data, distance)


@irdl_op_definition
class PredicatedInsertOp(IRDLOperation):
    """The tensor with a value inserted if a condition holds, else the tensor itself."""

    name = "xla_gpu.predicated_insert"

    condition = operand_def(I1)
    value = operand_def()
    dest = operand_def(TensorType)
    indices = var_operand_def(IndexType)
    output = result_def(TensorType)

    def __init__(self, condition: SSAValue, value: SSAValue, dest: SSAValue, indices: Sequence[SSAValue]) -> None:
        super().__init__(operands=[condition, value, dest, list(indices)], result_types=[dest.type])

    def print(self, printer: Printer) -> None:
        """Write ``%v into %t[%i] if %c : tensor<...>``."""
        printer.print_string(" ")
        printer.print_ssa_value(self.value)
        printer.print_string(" into ")
        printer.print_ssa_value(self.dest)
        print_values(printer, self.indices, "[", "]")
        printer.print_string(" if ")
        printer.print_ssa_value(self.condition)
        printer.print_string(" : ")
        printer.print_attribute(self.dest.type)

    @classmethod
    def parse(cls, parser: Parser) -> PredicatedInsertOp:
        """Read ``%v into %t[%i] if %c : tensor<...>``."""
        value = parser.parse_unresolved_operand()
        parser.parse_keyword("into")
        dest = parser.parse_unresolved_operand()
        indices = parse_indices(parser)
        parser.parse_keyword("if")
        condition = parser.parse_unresolved_operand()
        type_ = parse_tensor_type(parser)
        return cls(
            parser.resolve_operand(condition, i1),
            parser.resolve_operand(value, type_.element_type),
            parser.resolve_operand(dest, type_),
            indices,
        )


@irdl_op_definition
class PredicatedExtractOp(IRDLOperation):
    """The element of a tensor if a condition holds, else a value that stands for it."""

    name = "xla_gpu.predicated_extract"

    condition = operand_def(I1)
    fallback = operand_def()
    source = operand_def(TensorType)
    indices = var_operand_def(IndexType)
    output = result_def()

    def __init__(self, condition: SSAValue, fallback: SSAValue, source: SSAValue, indices: Sequence[SSAValue]) -> None:
        super().__init__(operands=[condition, fallback, source, list(indices)], result_types=[fallback.type])

    def print(self, printer: Printer) -> None:
        """Write ``%t[%i] if %c else %x : tensor<...>``."""
        printer.print_string(" ")
        printer.print_ssa_value(self.source)
        print_values(printer, self.indices, "[", "]")
        printer.print_string(" if ")
        printer.print_ssa_value(self.condition)
        printer.print_string(" else ")
        printer.print_ssa_value(self.fallback)
        printer.print_string(" : ")
        printer.print_attribute(self.source.type)

    @classmethod
    def parse(cls, parser: Parser) -> PredicatedExtractOp:
        """Read ``%t[%i] if %c else %x : tensor<...>``."""
        source = parser.parse_unresolved_operand()
        indices = parse_indices(parser)
        parser.parse_keyword("if")
        condition = parser.parse_unresolved_operand()
        parser.parse_keyword("else")
        fallback = parser.parse_unresolved_operand()
        type_ = parse_tensor_type(parser)
        return cls(
            parser.resolve_operand(condition, i1),
            parser.resolve_operand(fallback, type_.element_type),
            parser.resolve_operand(source, type_),
            indices,
        )


@irdl_op_definition
class AtomicRMWOp(IRDLOperation):
    """The tensor with an element replaced by what the body makes of it, all at once for other threads.

    The body of a vector replaces neighbours, each of which other threads see as a whole.
    """

    name = "xla_gpu.atomic_rmw"

    dest = operand_def(TensorType)
    indices = var_operand_def(IndexType)
    output = result_def(TensorType)
    body = region_def("single_block")

    def __init__(self, dest: SSAValue, indices: Sequence[SSAValue], body: Region | None = None) -> None:
        if body is None:
            body = Region(Block(arg_types=[_element_type(dest)]))
        super().__init__(operands=[dest, list(indices)], result_types=[dest.type], regions=[body])

    def verify_(self) -> None:
        """Check that the body takes an element, or neighbours as a vector."""
        types = [type_.element_type if isinstance(type_, VectorType) else type_ for type_ in self.body.block.arg_types]
        if types != [_element_type(self.dest)]:
            raise VerifyException("the body takes the current element, or a vector of neighbours")

    def print(self, printer: Printer) -> None:
        """Write ``%t[%i] : tensor<...> {^bb0(%current): ...}``."""
        printer.print_string(" ")
        printer.print_ssa_value(self.dest)
        print_values(printer, self.indices, "[", "]")
        printer.print_string(" : ")
        printer.print_attribute(self.dest.type)
        printer.print_string(" ")
        printer.print_region(self.body)

    @classmethod
    def parse(cls, parser: Parser) -> AtomicRMWOp:
        """Read ``%t[%i] : tensor<...> {^bb0(%current): ...}``."""
        dest = parser.parse_unresolved_operand()
        indices = parse_indices(parser)
        type_ = parse_tensor_type(parser)
        return cls(parser.resolve_operand(dest, type_), indices, parser.parse_region())


def _element_type(value: SSAValue) -> Attribute:
    assert isinstance(value.type, TensorType)
    return value.type.element_type
