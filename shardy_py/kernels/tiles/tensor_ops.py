"""Ops on tiles beside those of ``xtile``: what moves and combines elements, and comparisons of tensors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, ClassVar

from xdsl.dialects import builtin
from xdsl.dialects.builtin import DenseArrayBase, TensorType
from xdsl.ir import Attribute, Dialect, Region, SSAValue
from xdsl.irdl import (
    BaseAttr,
    IRDLOperation,
    VarConstraint,
    irdl_op_definition,
    operand_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import IsTerminator, Pure

from shardy_py.kernels.elemental.scalars import FLOAT_PREDICATES, INTEGER_PREDICATES


def dims_of(op: _Movement) -> tuple[int, ...]:
    """Return where the dimensions of a tile go."""
    dims: Any = op.properties[op.KEY]
    return tuple(dims.get_values())


class _Movement(IRDLOperation):
    """Elements of a tile in another order, or several times; ``dims`` says where they go."""

    KEY: ClassVar[str] = ""

    operand = operand_def(TensorType)
    result = result_def(TensorType)
    traits = traits_def(Pure())

    def __init__(self, operand: SSAValue, dims: Sequence[int], type_: Attribute) -> None:
        properties = {self.KEY: DenseArrayBase.from_list(builtin.i64, list(dims))}
        super().__init__(operands=[operand], result_types=[type_], properties=properties)

    def print(self, printer: Printer) -> None:
        """Write ``%x, dims = [1, 0] : (tensor<...>) -> tensor<...>``."""
        printer.print_string(" ")
        printer.print_ssa_value(self.operands[0])
        printer.print_string(f", dims = {list(dims_of(self))} : (")
        printer.print_attribute(self.operands[0].type)
        printer.print_string(") -> ")
        printer.print_attribute(self.results[0].type)

    @classmethod
    def parse(cls, parser: Parser) -> _Movement:
        """Read what `print` writes."""
        operand = parser.parse_unresolved_operand()
        parser.parse_punctuation(",")
        parser.parse_keyword("dims")
        parser.parse_punctuation("=")
        dims = parser.parse_comma_separated_list(Parser.Delimiter.SQUARE, parser.parse_integer)
        parser.parse_punctuation(":")
        with parser.in_parens():
            type_ = parser.parse_type()
        parser.parse_punctuation("->")
        return cls(parser.resolve_operand(operand, type_), dims, parser.parse_type())


@irdl_op_definition
class TransposeOp(_Movement):
    """Dimension ``i`` of the result is dimension ``dims[i]`` of the operand."""

    name = "stablehlo.transpose"
    KEY: ClassVar[str] = "permutation"

    dims = prop_def(DenseArrayBase, prop_name="permutation")


@irdl_op_definition
class BroadcastInDimOp(_Movement):
    """Dimension ``i`` of the operand is dimension ``dims[i]`` of the result."""

    name = "stablehlo.broadcast_in_dim"
    KEY: ClassVar[str] = "broadcast_dimensions"

    dims = prop_def(DenseArrayBase, prop_name="broadcast_dimensions")


@irdl_op_definition
class ReshapeOp(IRDLOperation):
    """The same elements, row-major, in another shape."""

    name = "stablehlo.reshape"

    operand = operand_def(TensorType)
    result = result_def(TensorType)
    traits = traits_def(Pure())
    assembly_format: ClassVar[str] = "$operand attr-dict `:` `(` type($operand) `)` `->` type($result)"


@irdl_op_definition
class IotaOp(IRDLOperation):
    """The numbers of the elements along a dimension."""

    name = "stablehlo.iota"

    iota_dimension = prop_def(builtin.IntegerAttr)
    result = result_def(TensorType)
    traits = traits_def(Pure())

    def __init__(self, dimension: int, type_: Attribute) -> None:
        properties = {"iota_dimension": builtin.IntegerAttr(dimension, builtin.i64)}
        super().__init__(result_types=[type_], properties=properties)

    def print(self, printer: Printer) -> None:
        """Write ``dim = 0 : tensor<...>``."""
        printer.print_string(f" dim = {self.iota_dimension.value.data} : ")
        printer.print_attribute(self.result.type)

    @classmethod
    def parse(cls, parser: Parser) -> IotaOp:
        """Read what `print` writes."""
        parser.parse_keyword("dim")
        parser.parse_punctuation("=")
        dimension = parser.parse_integer()
        parser.parse_punctuation(":")
        return cls(dimension, parser.parse_type())


@irdl_op_definition
class TensorReduceOp(IRDLOperation):
    """Tiles combined along dimensions, in any order, then with the initial values; printed in MLIR's generic form."""

    name = "stablehlo.reduce"

    arguments = var_operand_def(TensorType)
    dimensions = prop_def(DenseArrayBase)
    outputs = var_result_def(TensorType)
    body = region_def("single_block")

    def __init__(
        self, arguments: Sequence[SSAValue], dimensions: Sequence[int], types: Sequence[Attribute], body: Region
    ) -> None:
        properties = {"dimensions": DenseArrayBase.from_list(builtin.i64, list(dimensions))}
        super().__init__(operands=[list(arguments)], result_types=[list(types)], properties=properties, regions=[body])


@irdl_op_definition
class RegionReturnOp(IRDLOperation):
    """The values that a region gives back."""

    name = "stablehlo.return"

    arguments = var_operand_def()
    traits = traits_def(IsTerminator())
    assembly_format: ClassVar[str] = "$arguments attr-dict `:` type($arguments)"


def _condition_type(type_: Attribute) -> TensorType[Attribute]:
    assert isinstance(type_, TensorType)
    return TensorType(builtin.i1, type_.get_shape())


class _Comparison(IRDLOperation):
    """A comparison of tensors, which xDSL has of scalars only."""

    PREDICATES: ClassVar[tuple[str, ...]] = ()

    predicate = prop_def(builtin.IntegerAttr)
    lhs = operand_def(TensorType)
    rhs = operand_def(TensorType)
    result = result_def(TensorType)
    traits = traits_def(Pure())

    def print(self, printer: Printer) -> None:
        """Write ``olt, %x, %y : tensor<...>``."""
        predicate: Any = self.properties["predicate"]
        printer.print_string(f" {self.PREDICATES[predicate.value.data]}, ")
        printer.print_list(self.operands, printer.print_ssa_value)
        printer.print_string(" : ")
        printer.print_attribute(self.operands[0].type)

    @classmethod
    def parse(cls, parser: Parser) -> _Comparison:
        """Read what `print` writes."""
        name = parser.parse_identifier()
        if name not in cls.PREDICATES:
            parser.raise_error(f"a predicate is expected, one of {', '.join(cls.PREDICATES)}")
        parser.parse_punctuation(",")
        left = parser.parse_unresolved_operand()
        parser.parse_punctuation(",")
        right = parser.parse_unresolved_operand()
        parser.parse_punctuation(":")
        type_ = parser.parse_type()
        operands = parser.resolve_operands([left, right], [type_, type_], parser.pos)
        predicate = builtin.IntegerAttr(cls.PREDICATES.index(name), builtin.i64)
        return cls.create(operands=operands, result_types=[_condition_type(type_)], properties={"predicate": predicate})


@irdl_op_definition
class CmpfOp(_Comparison):
    """A comparison of floats."""

    name = "arith.cmpf"
    PREDICATES: ClassVar[tuple[str, ...]] = FLOAT_PREDICATES


@irdl_op_definition
class CmpiOp(_Comparison):
    """A comparison of integers."""

    name = "arith.cmpi"
    PREDICATES: ClassVar[tuple[str, ...]] = INTEGER_PREDICATES


@irdl_op_definition
class SelectOp(IRDLOperation):
    """Elements of one tensor or of another."""

    name = "arith.select"

    T: ClassVar = VarConstraint("T", BaseAttr(TensorType))

    condition = operand_def(TensorType)
    lhs = operand_def(T)
    rhs = operand_def(T)
    result = result_def(T)
    traits = traits_def(Pure())
    assembly_format: ClassVar[str] = "$condition `,` $lhs `,` $rhs attr-dict `:` type($condition) `,` type($result)"


class _Cast(IRDLOperation):
    """A conversion of tensors, which xDSL has of scalars only."""

    operand = operand_def(TensorType)
    result = result_def(TensorType)
    traits = traits_def(Pure())
    assembly_format: ClassVar[str] = "$operand attr-dict `:` type($operand) `to` type($result)"


def _cast(name: str) -> type[IRDLOperation]:
    """Return the class of a conversion of tensors."""
    return irdl_op_definition(type(f"{name.title()}Op", (_Cast,), {"name": f"arith.{name}"}))


_CASTS = (
    *("bitcast", "extf", "extsi", "extui", "fptosi", "fptoui"),
    *("index_cast", "index_castui", "sitofp", "truncf", "trunci", "uitofp"),
)
_ARITH: tuple[type[IRDLOperation], ...] = (CmpfOp, CmpiOp, SelectOp, *map(_cast, _CASTS))
TENSOR_OPS: Mapping[str, type[IRDLOperation]] = MappingProxyType({op.name: op for op in _ARITH})
"""Ops of ``arith`` that xDSL has of scalars only, by their names."""
STABLEHLO = Dialect("stablehlo", [BroadcastInDimOp, IotaOp, TensorReduceOp, ReshapeOp, RegionReturnOp, TransposeOp])
