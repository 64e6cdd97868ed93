"""Ops of the dialect ``xla_gpu`` that compute with indices: maps, loops over them, calls of functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import (
    IndexType,
    SymbolRefAttr,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    attr_def,
    irdl_op_definition,
    region_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import IsTerminator, Pure, RecursiveMemoryEffect
from xdsl.utils.exceptions import VerifyException

from shardy_py.indexing import IndexingMap
from shardy_py.kernels.dialect.types import (
    INDEX,
    IndexingMapAttr,
    parse_arguments,
    parse_carried,
    parse_map,
    print_carried,
    print_rest,
    print_values,
)


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
        print_values(printer, self.arguments[:count], "(", ")")
        if len(self.arguments) > count:
            print_values(printer, self.arguments[count:], "[", "]")
        print_rest(printer, self, "indexing_map")

    @classmethod
    def parse(cls, parser: Parser) -> ApplyIndexingOp:
        """Read ``#map(dims)[symbols]``."""
        map_ = parse_map(parser)
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
        print_values(printer, self.dims, " (", ")")
        print_values(printer, self.symbols, "[", "]")
        print_values(printer, self.indices, " -> (", ")")
        printer.print_string(" in ")
        printer.print_attribute(self.indexing_map_attr)
        print_carried(printer, "iter_args", self.carried, self.inits)
        printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False)
        print_rest(printer, self, "indexing_map_attr", "operandSegmentSizes", "operand_segment_sizes")

    @classmethod
    def parse(cls, parser: Parser) -> LoopOp:
        """Read what `print` writes."""
        position = parser.pos
        dims = parser.parse_comma_separated_list(Parser.Delimiter.PAREN, parser.parse_unresolved_operand)
        symbols = parse_arguments(parser, Parser.Delimiter.SQUARE)
        parser.parse_punctuation("->")
        results = parse_arguments(parser, Parser.Delimiter.PAREN)
        parser.parse_keyword("in")
        map_ = parse_map(parser)
        parser.parse_keyword("iter_args")
        pairs = parse_carried(parser)
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
