"""Ops of the dialect ``xla_gpu`` on tiles: elements that a thread holds, and reductions of a tensor as a value."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from xdsl.dialects.builtin import DenseArrayBase, IndexType, SymbolRefAttr, TensorType, VectorType, i64
from xdsl.ir import Attribute, ParametrizedAttribute, SSAValue, TypeAttribute
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    attr_def,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import AttrParser, Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from shardy_py.indexing import IndexingMap
from shardy_py.kernels.dialect.types import IndexingMapAttr, parse_indices, parse_map, print_rest, print_values


@irdl_attr_definition
class IndexedVectorType(ParametrizedAttribute, TypeAttribute):
    """A tile whose elements are spread over threads: ``!xla_gpu.indexed_vector<32x64xf32, #map>``.

    The map gives the place in the tile of each element that a thread holds; its symbols number these elements.
    """

    name = "xla_gpu.indexed_vector"

    tile: TensorType[Attribute]
    encoding: IndexingMapAttr

    @property
    def element_type(self) -> Attribute:
        """The type of an element."""
        return self.tile.element_type

    @property
    def thread_shape(self) -> tuple[int, ...]:
        """The number of values of each symbol: the shape of what a thread holds."""
        return tuple(bound.interval.upper + 1 for bound in self.encoding.data.ranges)

    @property
    def vector_type(self) -> VectorType[Attribute]:
        """The elements that a thread holds as a vector, the last symbol fastest."""
        return VectorType(self.element_type, [prod(self.thread_shape)])

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        """Read ``<32x64xf32, #map>``."""
        with parser.in_angle_brackets():
            return _parse_tile(parser)

    def print_parameters(self, printer: Printer) -> None:
        """Write ``<32x64xf32, #map>``."""
        with printer.in_angle_brackets():
            printer.print_list(self.tile.get_shape(), lambda size: printer.print_string(f"{size}x"), delimiter="")
            printer.print_attribute(self.element_type)
            printer.print_string(", ")
            printer.print_attribute(self.encoding)


def _parse_tile(parser: AttrParser) -> tuple[TensorType[Attribute], IndexingMapAttr]:
    """Read ``32x64xf32, #map``."""
    shape, element = parser.parse_ranked_shape()
    parser.parse_punctuation(",")
    encoding = parser.parse_attribute()
    if not isinstance(encoding, IndexingMapAttr):
        parser.raise_error("an indexing map is expected")
    return TensorType(element, shape), encoding


def _parse_indexed_vector(parser: Parser) -> IndexedVectorType:
    """Read the type with or without its name."""
    if parser.parse_optional_punctuation("<") is None:
        type_ = parser.parse_type()
    else:
        type_ = IndexedVectorType(*_parse_tile(parser))
        parser.parse_punctuation(">")
    if not isinstance(type_, IndexedVectorType):
        parser.raise_error("an indexed vector type is expected")
    return type_


def _check_symbols(map_: IndexingMap) -> None:
    if map_.runtimes or any(bound.interval.lower != 0 for bound in map_.ranges):
        raise VerifyException("the symbols of a tile's map begin with 0, and none is read at run time")


@irdl_op_definition
class MaterializeOp(IRDLOperation):
    """The elements of a tile that a thread holds: a function at every index that a map gives for the thread."""

    name = "xla_gpu.materialize"

    callee = attr_def(SymbolRefAttr)
    map_attr = attr_def(IndexingMapAttr, attr_name="map")
    inputs = var_operand_def()
    indices = var_operand_def(IndexType)
    output = result_def(IndexedVectorType)
    irdl_options = (AttrSizedOperandSegments(as_property=False),)
    traits = traits_def(Pure())

    def __init__(
        self,
        callee: str,
        inputs: Sequence[SSAValue],
        map_: IndexingMap,
        indices: Sequence[SSAValue],
        type_: IndexedVectorType,
    ) -> None:
        super().__init__(
            operands=[list(inputs), list(indices)],
            result_types=[type_],
            attributes={"callee": SymbolRefAttr(callee), "map": IndexingMapAttr(map_)},
        )

    @property
    def map(self) -> IndexingMap:
        """The map from threads and symbols to the index of an element."""
        return self.map_attr.data

    def verify_(self) -> None:
        """Check that the map has a dimension per index, and the symbols of the tile."""
        if len(self.indices) != len(self.map.dims):
            raise VerifyException(f"the map has {len(self.map.dims)} dimensions, the op {len(self.indices)} indices")
        _check_symbols(self.map)
        intervals, tile_intervals = (
            [bound.interval for bound in item.ranges] for item in (self.map, self.output.type.encoding.data)
        )
        if intervals != tile_intervals:
            raise VerifyException("the maps of op and tile have different symbols")

    def print(self, printer: Printer) -> None:
        """Write ``@f(inputs) at #map(indices) : (types) -> !xla_gpu.indexed_vector<...>``."""
        printer.print_string(" ")
        printer.print_attribute(self.callee)
        print_values(printer, self.inputs, "(", ") at ")
        printer.print_attribute(self.map_attr)
        print_values(printer, self.indices, "(", ")")
        print_rest(printer, self, "callee", "map", "operandSegmentSizes")
        printer.print_string(" : (")
        printer.print_list(self.inputs.types, printer.print_attribute)
        printer.print_string(") -> ")
        printer.print_attribute(self.output.type)

    @classmethod
    def parse(cls, parser: Parser) -> MaterializeOp:
        """Read what `print` writes."""
        callee = parser.parse_symbol_name()
        position = parser.pos
        inputs = parser.parse_comma_separated_list(Parser.Delimiter.PAREN, parser.parse_unresolved_operand)
        parser.parse_keyword("at")
        map_ = parse_map(parser)
        indices = parse_indices(parser, Parser.Delimiter.PAREN)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        types = parser.parse_comma_separated_list(Parser.Delimiter.PAREN, parser.parse_type)
        parser.parse_punctuation("->")
        type_ = _parse_indexed_vector(parser)
        op = cls(callee.data, parser.resolve_operands(inputs, types, position), map_, indices, type_)
        op.attributes |= attributes
        return op


@irdl_op_definition
class InsertOp(IRDLOperation):
    """The tensor with the elements of a tile written to it, each thread its own."""

    name = "xla_gpu.insert"

    source = operand_def(IndexedVectorType)
    indices = var_operand_def(IndexType)
    dest = operand_def(TensorType)
    map_attr = attr_def(IndexingMapAttr, attr_name="map")
    output = result_def(TensorType)

    def __init__(self, source: SSAValue, indices: Sequence[SSAValue], dest: SSAValue, map_: IndexingMap) -> None:
        super().__init__(
            operands=[source, list(indices), dest],
            result_types=[dest.type],
            attributes={"map": IndexingMapAttr(map_)},
        )

    @property
    def map(self) -> IndexingMap:
        """The map from a place in the tile to the index of the tensor."""
        return self.map_attr.data

    def verify_(self) -> None:
        """Check the map against tile and tensor."""
        assert isinstance(self.source.type, IndexedVectorType)
        assert isinstance(self.dest.type, TensorType)
        encoding = self.source.type.encoding.data
        _check_symbols(encoding)
        if len(self.indices) != len(encoding.dims):
            raise VerifyException(f"the tile's map has {len(encoding.dims)} dimensions, the op {len(self.indices)}")
        if len(self.map.dims) != len(encoding.results) or self.map.ranges or self.map.runtimes:
            raise VerifyException("the map takes a place in the tile, and nothing else")
        if len(self.map.results) != len(self.dest.type.get_shape()):
            raise VerifyException(f"the map has {len(self.map.results)} results for an element of {self.dest.type}")

    def print(self, printer: Printer) -> None:
        """Write ``%tile(indices) into %t at #map : !xla_gpu.indexed_vector<...> -> tensor<...>``."""
        printer.print_string(" ")
        printer.print_ssa_value(self.source)
        print_values(printer, self.indices, "(", ") into ")
        printer.print_ssa_value(self.dest)
        printer.print_string(" at ")
        printer.print_attribute(self.map_attr)
        print_rest(printer, self, "map")
        printer.print_string(" : ")
        printer.print_attribute(self.source.type)
        printer.print_string(" -> ")
        printer.print_attribute(self.dest.type)

    @classmethod
    def parse(cls, parser: Parser) -> InsertOp:
        """Read what `print` writes."""
        source = parser.parse_unresolved_operand()
        indices = parse_indices(parser, Parser.Delimiter.PAREN)
        parser.parse_keyword("into")
        dest = parser.parse_unresolved_operand()
        parser.parse_keyword("at")
        map_ = parse_map(parser)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        type_ = _parse_indexed_vector(parser)
        parser.parse_punctuation("->")
        target = parser.parse_type()
        op = cls(parser.resolve_operand(source, type_), indices, parser.resolve_operand(dest, target), map_)
        op.attributes |= attributes
        return op


@irdl_op_definition
class ReindexOp(IRDLOperation):
    """A tensor whose element at an index is that of another one where a map says, or a default outside its domain."""

    name = "xla_gpu.reindex"

    source = operand_def(TensorType)
    default = opt_operand_def()
    map_attr = attr_def(IndexingMapAttr, attr_name="indexing_map")
    output = result_def(TensorType)
    traits = traits_def(Pure())

    def __init__(
        self, source: SSAValue, map_: IndexingMap, default: SSAValue | None, type_: TensorType[Attribute]
    ) -> None:
        super().__init__(
            operands=[source, default], result_types=[type_], attributes={"indexing_map": IndexingMapAttr(map_)}
        )

    @property
    def map(self) -> IndexingMap:
        """The map from an index of the result to one of the source."""
        return self.map_attr.data

    def verify_(self) -> None:
        """Check the map against both tensors."""
        assert isinstance(self.source.type, TensorType)
        if len(self.map.dims) != len(self.output.type.get_shape()) or self.map.ranges or self.map.runtimes:
            raise VerifyException("the map takes an index of the result, and nothing else")
        if len(self.map.results) != len(self.source.type.get_shape()):
            raise VerifyException(f"the map has {len(self.map.results)} results for an element of {self.source.type}")

    def print(self, printer: Printer) -> None:
        """Write ``%t at #map default %c : tensor<...> -> tensor<...>``."""
        printer.print_string(" ")
        printer.print_ssa_value(self.source)
        printer.print_string(" at ")
        printer.print_attribute(self.map_attr)
        if self.default is not None:
            printer.print_string(" default ")
            printer.print_ssa_value(self.default)
        print_rest(printer, self, "indexing_map")
        printer.print_string(" : ")
        printer.print_attribute(self.source.type)
        printer.print_string(" -> ")
        printer.print_attribute(self.output.type)

    @classmethod
    def parse(cls, parser: Parser) -> ReindexOp:
        """Read what `print` writes."""
        source = parser.parse_unresolved_operand()
        parser.parse_keyword("at")
        map_ = parse_map(parser)
        default = parser.parse_unresolved_operand() if parser.parse_optional_keyword("default") else None
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        types: list[Any] = [parser.parse_type()]
        parser.parse_punctuation("->")
        types.append(parser.parse_type())
        if not all(isinstance(type_, TensorType) for type_ in types):
            parser.raise_error("tensor types are expected")
        value = None if default is None else parser.resolve_operand(default, types[1].element_type)
        op = cls(parser.resolve_operand(source, types[0]), map_, value, types[1])
        op.attributes |= attributes
        return op


@irdl_op_definition
class ReduceOp(IRDLOperation):
    """Tensors reduced over some dimensions by a function: accumulators first, then elements."""

    name = "xla_gpu.reduce"

    inputs = var_operand_def(TensorType)
    inits = var_operand_def()
    dimensions = attr_def(DenseArrayBase)
    combiner = attr_def(SymbolRefAttr)
    outputs = var_result_def(TensorType)
    irdl_options = (AttrSizedOperandSegments(as_property=False),)
    traits = traits_def(Pure())

    def __init__(
        self,
        inputs: Sequence[SSAValue],
        inits: Sequence[SSAValue],
        dimensions: Sequence[int],
        combiner: str,
        types: Sequence[Attribute],
    ) -> None:
        super().__init__(
            operands=[list(inputs), list(inits)],
            result_types=[list(types)],
            attributes={
                "dimensions": DenseArrayBase.from_list(i64, list(dimensions)),
                "combiner": SymbolRefAttr(combiner),
            },
        )

    @property
    def reduced(self) -> tuple[int, ...]:
        """The dimensions that are reduced."""
        return tuple(map(int, self.dimensions.get_values()))

    def verify_(self) -> None:
        """Check that the inputs have one shape, and the results the dimensions of it that are not reduced."""
        if not len(self.inputs) == len(self.inits) == len(self.outputs):
            raise VerifyException("there are as many initial values and results as inputs")
        shapes = set()
        for source, result in zip(self.inputs, self.outputs, strict=True):
            assert isinstance(source.type, TensorType)
            assert isinstance(result.type, TensorType)
            shapes.add(source.type.get_shape())
            rank = len(source.type.get_shape())
            if len(set(self.reduced)) < len(self.reduced) or any(not 0 <= number < rank for number in self.reduced):
                raise VerifyException(f"{self.reduced} are not different dimensions of {source.type}")
            if _reduced_type(source.type, self.reduced).get_shape() != result.type.get_shape():
                raise VerifyException(f"{source.type} without the dimensions {self.reduced} is not {result.type}")
        if len(shapes) > 1:
            raise VerifyException("the inputs have different shapes")

    def print(self, printer: Printer) -> None:
        """Write ``(%t) inits(%c) dimensions=[1] combiner=@add : tensor<...> to tensor<...>``."""
        print_values(printer, self.inputs, " (", ")")
        print_values(printer, self.inits, " inits(", ")")
        printer.print_string(f" dimensions=[{', '.join(map(str, self.reduced))}] combiner=")
        printer.print_attribute(self.combiner)
        print_rest(printer, self, "dimensions", "combiner", "operandSegmentSizes")
        printer.print_string(" : ")
        printer.print_list(self.inputs.types, printer.print_attribute)
        printer.print_string(" to ")
        printer.print_list(self.outputs.types, printer.print_attribute)

    @classmethod
    def parse(cls, parser: Parser) -> ReduceOp:
        """Read what `print` writes."""
        position = parser.pos
        inputs = parser.parse_comma_separated_list(Parser.Delimiter.PAREN, parser.parse_unresolved_operand)
        parser.parse_keyword("inits")
        inits = parser.parse_comma_separated_list(Parser.Delimiter.PAREN, parser.parse_unresolved_operand)
        parser.parse_keyword("dimensions")
        parser.parse_punctuation("=")
        dimensions = parser.parse_comma_separated_list(Parser.Delimiter.SQUARE, parser.parse_integer)
        parser.parse_keyword("combiner")
        parser.parse_punctuation("=")
        combiner = parser.parse_symbol_name()
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        types: list[Any] = parser.parse_comma_separated_list(Parser.Delimiter.NONE, parser.parse_type)
        if not all(isinstance(type_, TensorType) for type_ in types):
            parser.raise_error("tensor types are expected")
        elements = [type_.element_type for type_ in types]
        sources = parser.resolve_operands(inputs, types, position)
        values = parser.resolve_operands(inits, elements, position)
        if parser.parse_optional_keyword("to"):
            results = parser.parse_comma_separated_list(Parser.Delimiter.NONE, parser.parse_type)
        else:
            results = [_reduced_type(type_, dimensions) for type_ in types]
        op = cls(sources, values, dimensions, combiner.data, results)
        op.attributes |= attributes
        return op


def _reduced_type(type_: TensorType[Attribute], dimensions: Sequence[int]) -> TensorType[Attribute]:
    shape = [size for number, size in enumerate(type_.get_shape()) if number not in dimensions]
    return TensorType(type_.element_type, shape)
