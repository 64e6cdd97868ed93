"""Ops of the dialect ``arith`` that xDSL does not have."""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, IntegerType
from xdsl.ir import Attribute, Dialect, SSAValue
from xdsl.irdl import IRDLOperation, base, irdl_op_definition, operand_def, result_def, traits_def
from xdsl.traits import Pure

_INDEX_OR_INTEGER = base(IndexType) | base(IntegerType)


@irdl_op_definition
class IndexCastUIOp(IRDLOperation):
    """An index as an integer without a sign, or the other way round."""

    name = "arith.index_castui"

    input = operand_def(_INDEX_OR_INTEGER)
    result = result_def(_INDEX_OR_INTEGER)
    assembly_format: ClassVar[str] = "$input attr-dict `:` type($input) `to` type($result)"
    traits = traits_def(Pure())

    def __init__(self, input: SSAValue, type_: Attribute) -> None:
        super().__init__(operands=[input], result_types=[type_])


@irdl_op_definition
class RemFOp(arith.FloatingPointLikeBinaryOperation):
    """The remainder of floats, with the sign of the dividend."""

    name = "arith.remf"
    traits = traits_def(Pure())


_KNOWN = {op.name for op in arith.Arith.operations}
_MISSING = [op for op in (IndexCastUIOp, RemFOp) if op.name not in _KNOWN]
ARITH = Dialect("arith", [*arith.Arith.operations, *_MISSING], [*arith.Arith.attributes])
