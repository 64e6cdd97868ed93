"""Constants with one value in the places of ops that only spread or rearrange such constants."""

from __future__ import annotations

import re
from copy import copy
from typing import ClassVar

from shardy_py.ir.graph.attributes import RawAttribute
from shardy_py.ir.graph.program import Op, Program
from shardy_py.ir.graph.types import TensorType
from shardy_py.ir.interfaces.ops import Broadcast, ConstantLike, OpSemantics, Product, Reshape, Sum
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.values import frozen

_VALUE = "value"
_SPLAT = re.compile(r"dense<([^\[\]]+)> : tensor<[^<>]*(?:<[^<>]*>)?>")


@frozen
class FoldSplatsPass:
    """Make a broadcast or reshape of a constant with one value a constant itself, which has no mesh.

    Args:
        identities: Whether sums with zeros and products with ones are folded, too.
    """

    name: ClassVar[str] = "mpmd-fold-splats"

    identities: bool = False

    def run(self, program: Program, context: PassContext) -> None:
        """Visit all ops in order."""
        for op in list(program.walk()):
            if op.parent is None:
                continue
            if self.identities and _fold_identity(op, context.semantics):
                continue
            constant = _splat(op, context.semantics)
            if constant is not None and op.parent is not None:
                op.parent.insert_before(op, constant)
                op.results[0].replace_all_uses_with(constant.results[0])
                source = op.operands[0].defining_op
                op.erase()
                if source is not None and not source.results[0].uses:
                    source.erase()


def _fold_identity(op: Op, semantics: OpSemantics) -> bool:
    """Replace a sum with zeros, or a product with ones, by the other operand; return whether it was one."""
    if len(op.operands) != 2 or len(op.results) != 1 or op.regions:
        return False
    traits = semantics.get_traits(op)
    neutral = next((number for trait, number in ((Sum, 0.0), (Product, 1.0)) if trait in traits), None)
    for value, other in (op.operands, tuple(reversed(op.operands))) if neutral is not None else ():
        constant = value.defining_op
        if other.type == op.results[0].type and constant is not None and _number(constant, semantics) == neutral:
            op.results[0].replace_all_uses_with(other)
            op.erase()
            if not constant.results[0].uses:
                constant.erase()
            return True
    return False


def _number(constant: Op, semantics: OpSemantics) -> float | None:
    """Return the one value of a constant, or None."""
    match = _SPLAT.fullmatch(str(constant.attributes.get(_VALUE)))
    if match is None or not semantics.has_trait(constant, ConstantLike):
        return None
    try:
        return float(match[1])
    except ValueError:
        return None


def _splat(op: Op, semantics: OpSemantics) -> Op | None:
    """Return the constant that an op is, in no block yet, or None."""
    if len(op.operands) != 1 or len(op.results) != 1 or not {Broadcast, Reshape} & semantics.get_traits(op):
        return None
    source, type_ = op.operands[0].defining_op, op.results[0].type
    if source is None or not isinstance(type_, TensorType) or not semantics.has_trait(source, ConstantLike):
        return None
    operand = op.operands[0].type
    match = _SPLAT.fullmatch(str(source.attributes.get(_VALUE)))
    if match is None or not isinstance(operand, TensorType) or operand.element_type != type_.element_type:
        return None
    attributes = copy(source.attributes)
    attributes[_VALUE] = RawAttribute(f"dense<{match[1]}> : {type_}")
    return Op(op.program, source.name, (), [type_], attributes)
