"""Ops of the dialect ``xla_gpu``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import (
    I1,
    IndexType,
    IntegerAttr,
    SymbolRefAttr,
    TensorType,
    i1,
    i64,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    attr_def,
    irdl_op_definition,
    operand_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer
from xdsl.traits import IsTerminator, Pure, RecursiveMemoryEffect
from xdsl.utils.exceptions import VerifyException

from shardy_py.emitters.dialect.attributes import IndexingMapAttr
from shardy_py.indexing import IndexingMap

INDEX = IndexType()


@irdl_op_definition
class ApplyIndexingOp(IRDLOperation):
    """The results of an indexing map at some dimensions and symbols."""

    name = "xla_gpu.apply_indexing"

    arguments = var_operand_def(IndexType)
    indexing_map = attr_def(IndexingMapAttr)
    outputs = var_result_def(IndexType)
    traits = traits_def(Pure())

    def __init__(self, indexing_map: IndexingMap, arguments: Sequence[SSAValue | Operation]) -> None:
        super().__init__(
            operands=[list(arguments)],
            result_types=[[INDEX] * len(indexing_map.results)],
            attributes={"indexing_map": IndexingMapAttr(indexing_map)},
        )

    @property
    def map(self) -> IndexingMap:
        """The map."""
        return self.indexing_map.data

    def verify_(self) -> None:
        """Check that there is an operand per variable and a result per result of the map."""
        map_ = self.map
        if len(self.arguments) != len(map_.variables):
            count = len(map_.variables)
            raise VerifyException(f"the map has {count} variables, there are {len(self.arguments)} operands")
        if len(self.outputs) != len(map_.results):
            raise VerifyException(f"the map has {len(map_.results)} results, the op {len(self.outputs)}")

    def print(self, printer: Printer) -> None:
        """Write ``#map(dims)[symbols]``."""
        printer.print_string(" ")
        printer.print_attribute(self.indexing_map)
        count = len(self.map.dims)
        _print_values(printer, self.arguments[:count], "(", ")")
        if len(self.arguments) > count:
            _print_values(printer, self.arguments[count:], "[", "]")
        _print_rest(printer, self, "indexing_map")

    @classmethod
    def parse(cls, parser: Parser) -> ApplyIndexingOp:
        """Read ``#map(dims)[symbols]``."""
        map_ = _parse_map(parser)
        operands = parser.parse_optional_comma_separated_list(Parser.Delimiter.PAREN, parser.parse_unresolved_operand)
        operands = list(operands or ())
        more = parser.parse_optional_comma_separated_list(Parser.Delimiter.SQUARE, parser.parse_unresolved_operand)
        operands += more or ()
        op = cls(map_, parser.resolve_operands(operands, [INDEX] * len(operands), parser.pos))
        op.attributes |= parser.parse_optional_attr_dict()
        return op


@irdl_op_definition
class YieldOp(IRDLOperation):
    """The values that a region gives back."""

    name = "xla_gpu.yield"

    arguments = var_operand_def()
    traits = traits_def(IsTerminator(), Pure())

    def __init__(self, *arguments: SSAValue | Operation) -> None:
        super().__init__(operands=[list(arguments)])

    def print(self, printer: Printer) -> None:
        """Write ``%x : type``."""
        if not self.arguments:
            return
        printer.print_string(" ")
        printer.print_list(self.arguments, printer.print_ssa_value)
        printer.print_string(" : ")
        printer.print_list(self.arguments.types, printer.print_attribute)

    @classmethod
    def parse(cls, parser: Parser) -> YieldOp:
        """Read ``%x : type``."""
        position = parser.pos
        operands = parser.parse_optional_undelimited_comma_separated_list(
            parser.parse_optional_unresolved_operand, parser.parse_unresolved_operand
        )
        if operands is None:
            return cls()
        parser.parse_punctuation(":")
        types = parser.parse_comma_separated_list(Parser.Delimiter.NONE, parser.parse_type)
        return cls(*parser.resolve_operands(operands, types, position))


@irdl_op_definition
class LoopOp(IRDLOperation):
    """A loop over all values of a map's symbols for which its constraints hold.

    The arguments of the body are the symbols, the results of the map, then the carried values.
    """

    name = "xla_gpu.loop"

    dims = var_operand_def(IndexType)
    inits = var_operand_def()
    indexing_map_attr = attr_def(IndexingMapAttr)
    outputs = var_result_def()
    body = region_def("single_block")
    irdl_options = (AttrSizedOperandSegments(as_property=False),)
    traits = traits_def(RecursiveMemoryEffect())

    def __init__(
        self,
        indexing_map: IndexingMap,
        dims: Sequence[SSAValue | Operation],
        inits: Sequence[SSAValue | Operation],
        body: Region | None = None,
    ) -> None:
        types = [SSAValue.get(value).type for value in inits]
        if body is None:
            indices = [INDEX] * (len(indexing_map.ranges) + len(indexing_map.runtimes) + len(indexing_map.results))
            body = Region(Block(arg_types=[*indices, *types]))
        super().__init__(
            operands=[list(dims), list(inits)],
            result_types=[types],
            attributes={"indexing_map_attr": IndexingMapAttr(indexing_map)},
            regions=[body],
        )

    @property
    def map(self) -> IndexingMap:
        """The map."""
        return self.indexing_map_attr.data

    @property
    def symbols(self) -> Sequence[SSAValue]:
        """The arguments of the body that are the map's symbols."""
        return self.body.block.args[: self._num_symbols]

    @property
    def indices(self) -> Sequence[SSAValue]:
        """The arguments of the body that are the map's results."""
        return self.body.block.args[self._num_symbols : self._num_symbols + len(self.map.results)]

    @property
    def carried(self) -> Sequence[SSAValue]:
        """The arguments of the body that are the carried values."""
        return self.body.block.args[self._num_symbols + len(self.map.results) :]

    @property
    def _num_symbols(self) -> int:
        return len(self.map.ranges) + len(self.map.runtimes)

    def verify_(self) -> None:
        """Check operands, arguments and what the body yields against the map."""
        if len(self.dims) != len(self.map.dims):
            raise VerifyException(f"the map has {len(self.map.dims)} dimensions, the loop {len(self.dims)}")
        expected = self._num_symbols + len(self.map.results) + len(self.inits)
        if len(self.body.block.args) != expected:
            raise VerifyException(f"the body takes {len(self.body.block.args)} arguments, the loop gives {expected}")
        last = self.body.block.last_op
        if isinstance(last, YieldOp) and list(last.arguments.types) != list(self.inits.types):
            raise VerifyException("the body yields other types than those of the carried values")

    def print(self, printer: Printer) -> None:
        """Write ``(dims)[symbols] -> (results) in #map iter_args(...) -> (types) {...}``."""
        _print_values(printer, self.dims, " (", ")")
        _print_values(printer, self.symbols, "[", "]")
        _print_values(printer, self.indices, " -> (", ")")
        printer.print_string(" in ")
        printer.print_attribute(self.indexing_map_attr)
        printer.print_string(" iter_args(")
        pairs = zip(self.carried, self.inits, strict=True)

        def assignment(pair: tuple[SSAValue, SSAValue]) -> None:
            printer.print_ssa_value(pair[0])
            printer.print_string(" = ")
            printer.print_ssa_value(pair[1])

        printer.print_list(pairs, assignment)
        printer.print_string(") -> (")
        printer.print_list(self.inits.types, printer.print_attribute)
        printer.print_string(") ")
        printer.print_region(self.body, print_entry_block_args=False)
        _print_rest(printer, self, "indexing_map_attr", "operandSegmentSizes", "operand_segment_sizes")

    @classmethod
    def parse(cls, parser: Parser) -> LoopOp:
        """Read what `print` writes."""

        def operand() -> UnresolvedOperand:
            return parser.parse_unresolved_operand()

        def argument() -> Parser.UnresolvedArgument:
            return parser.parse_argument(expect_type=False)

        position = parser.pos
        dims = parser.parse_comma_separated_list(Parser.Delimiter.PAREN, operand)
        symbols = parser.parse_comma_separated_list(Parser.Delimiter.SQUARE, argument)
        parser.parse_punctuation("->")
        results = parser.parse_comma_separated_list(Parser.Delimiter.PAREN, argument)
        parser.parse_keyword("in")
        map_ = _parse_map(parser)
        parser.parse_keyword("iter_args")

        def assignment() -> tuple[Parser.UnresolvedArgument, UnresolvedOperand]:
            carried = argument()
            parser.parse_punctuation("=")
            return carried, operand()

        pairs = parser.parse_comma_separated_list(Parser.Delimiter.PAREN, assignment)
        parser.parse_punctuation("->")
        types = parser.parse_comma_separated_list(Parser.Delimiter.PAREN, parser.parse_type)
        arguments = [item.resolve(INDEX) for item in (*symbols, *results)]
        arguments += [pair[0].resolve(type_) for pair, type_ in zip(pairs, types, strict=True)]
        inits = parser.resolve_operands([pair[1] for pair in pairs], types, position)
        body = parser.parse_region(arguments)
        op = cls(map_, parser.resolve_operands(dims, [INDEX] * len(dims), position), inits, body)
        op.attributes |= parser.parse_optional_attr_dict()
        return op


@irdl_op_definition
class PureCallOp(IRDLOperation):
    """A call of a function that computes an element and has no side effects."""

    name = "xla_gpu.pure_call"

    callee = attr_def(SymbolRefAttr)
    arguments = var_operand_def()
    outputs = var_result_def()
    traits = traits_def(Pure())
    assembly_format: ClassVar[str] = "$callee `(` $arguments `)` attr-dict `:` functional-type(operands, results)"

    def __init__(self, callee: str, arguments: Sequence[SSAValue | Operation], results: Sequence[Attribute]) -> None:
        super().__init__(
            operands=[list(arguments)], result_types=[list(results)], attributes={"callee": SymbolRefAttr(callee)}
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
        _print_values(printer, self.arguments, "(", ")")
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
        _print_values(printer, self.indices, "[", "]")
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
        indices = _parse_indices(parser)
        parser.parse_keyword("if")
        condition = parser.parse_unresolved_operand()
        type_ = _parse_tensor_type(parser)
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
        _print_values(printer, self.indices, "[", "]")
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
        indices = _parse_indices(parser)
        parser.parse_keyword("if")
        condition = parser.parse_unresolved_operand()
        parser.parse_keyword("else")
        fallback = parser.parse_unresolved_operand()
        type_ = _parse_tensor_type(parser)
        return cls(
            parser.resolve_operand(condition, i1),
            parser.resolve_operand(fallback, type_.element_type),
            parser.resolve_operand(source, type_),
            indices,
        )


@irdl_op_definition
class AtomicRMWOp(IRDLOperation):
    """The tensor with an element replaced by what the body makes of it, all at once for other threads."""

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
        """Check that the body takes and yields an element."""
        if list(self.body.block.arg_types) != [_element_type(self.dest)]:
            raise VerifyException("the body takes the current element")

    def print(self, printer: Printer) -> None:
        """Write ``%t[%i] : tensor<...> {^bb0(%current): ...}``."""
        printer.print_string(" ")
        printer.print_ssa_value(self.dest)
        _print_values(printer, self.indices, "[", "]")
        printer.print_string(" : ")
        printer.print_attribute(self.dest.type)
        printer.print_string(" ")
        printer.print_region(self.body)

    @classmethod
    def parse(cls, parser: Parser) -> AtomicRMWOp:
        """Read ``%t[%i] : tensor<...> {^bb0(%current): ...}``."""
        dest = parser.parse_unresolved_operand()
        indices = _parse_indices(parser)
        type_ = _parse_tensor_type(parser)
        return cls(parser.resolve_operand(dest, type_), indices, parser.parse_region())


def _element_type(value: SSAValue) -> Attribute:
    assert isinstance(value.type, TensorType)
    return value.type.element_type


def _print_values(printer: Printer, values: Sequence[SSAValue], opening: str, closing: str) -> None:
    printer.print_string(opening)
    printer.print_list(values, printer.print_ssa_value)
    printer.print_string(closing)


def _print_rest(printer: Printer, op: IRDLOperation, *shown: str) -> None:
    printer.print_op_attributes(op.attributes, reserved_attr_names=shown)


def _parse_map(parser: Parser) -> IndexingMap:
    attribute = parser.parse_attribute()
    if not isinstance(attribute, IndexingMapAttr):
        parser.raise_error("an indexing map is expected")
    return attribute.data


def _parse_indices(parser: Parser) -> Sequence[SSAValue]:
    position = parser.pos
    operands = parser.parse_comma_separated_list(Parser.Delimiter.SQUARE, parser.parse_unresolved_operand)
    return parser.resolve_operands(operands, [INDEX] * len(operands), position)


def _parse_tensor_type(parser: Parser) -> TensorType[Attribute]:
    parser.parse_punctuation(":")
    type_ = parser.parse_type()
    if not isinstance(type_, TensorType):
        parser.raise_error("a tensor type is expected")
    return type_
