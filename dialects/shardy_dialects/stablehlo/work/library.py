"""Ops that YNNPACK, the library of XLA:CPU, computes in one kernel with the reductions around them.

As in XLA's ynn_matcher.h and ynn_support.cc: IsInstructionPreferredByYnn, IsElementwiseOpSupportedByYnn,
IsBroadcastOpSupportedByYnn, IsReduceLikeOpSupportedByYnn and IsDotSupportedByYnn. Layouts are not looked at.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from math import prod

from shardy_dialects.stablehlo.attributes import parse_dimension_numbers
from shardy_dialects.stablehlo.definitions import attribute
from shardy_py.ir.graph.program import Op, Value
from shardy_py.ir.graph.types import TensorType
from shardy_py.plugins import CostOpInterface, OpShapes

_ELEMENTWISE = frozenset(
    (
        *("abs", "add", "ceil", "convert", "cosine", "divide", "exponential", "exponential_minus_one", "floor", "log"),
        *("log_plus_one", "logistic", "maximum", "minimum", "multiply", "negate", "power", "round_nearest_even"),
        *("rsqrt", "sign", "sine", "sqrt", "subtract", "tan", "tanh"),
    )
)
_MOVING = frozenset(("broadcast_in_dim", "reshape"))
_COMBINING = frozenset(("stablehlo.add", "stablehlo.maximum", "stablehlo.minimum"))
_LEAST_ELEMENTS = 4096
"""Of an operand or of the result, unless it only moves or multiplies."""
_LEAST_DIM = 8
"""Of the rows, the columns or the sums of a product."""


class LibraryCost(CostOpInterface):
    """An op that the library may compute."""

    def get_library_operands(self, op: Op, shapes: OpShapes) -> tuple[int, ...] | None:
        """Return all operands but the divisor that is inverted before it is broadcast, where the library has the op."""
        name = op.name.removeprefix("stablehlo.")
        if not _has(op, shapes, name):
            return None
        if name == "divide" and (maker := op.operands[1].defining_op) and maker.name == "stablehlo.broadcast_in_dim":
            return (0,)
        return tuple(range(len(op.operands)))


def _has(op: Op, shapes: OpShapes, name: str) -> bool:
    types = {_element_type(value) for value in (*op.operands, *op.results)}
    if name in _MOVING:
        dims = attribute(op, "broadcast_dimensions", ())
        return types <= {"f32", "f64", "bf16"} and all(one < two for one, two in pairwise(dims))
    if name == "dot_general":
        return types in ({"f32"}, {"f64"}) and _is_large_product(op, shapes)
    if max(map(prod, (*shapes.operands, *shapes.results))) < _LEAST_ELEMENTS:
        return False
    if name == "reduce":
        return types in ({"f32"}, {"f64"}) and len(op.results) == 1 and _combines(op)
    return name in _ELEMENTWISE and types <= {"f32", "f64", "bf16"}


def _combines(op: Op) -> bool:
    """Return whether a reduction is a sum, or gives the largest or the smallest element."""
    made = [inner.name for block in op.regions[0].blocks for inner in block.ops if inner.results]
    return len(made) == 1 and made[0] in _COMBINING


def _is_large_product(op: Op, shapes: OpShapes) -> bool:
    """Return whether both operands are matrices, and one dimension of the product is large enough."""
    numbers = parse_dimension_numbers(str(attribute(op, "dot_dimension_numbers", "")))
    left, right = shapes.operands
    contracted = prod(left[dim] for dim in numbers.dims("lhs_contracting_dimensions"))
    shared = contracted * prod(left[dim] for dim in numbers.dims("lhs_batching_dimensions"))
    rows, columns = (prod(shape) // max(1, shared) for shape in (left, right))
    return min(rows, columns) > 1 and max(rows, columns, contracted) >= _LEAST_DIM


def _element_type(value: Value) -> str:
    return value.type.element_type if isinstance(value.type, TensorType) else ""


COSTS: Mapping[str, CostOpInterface] = dict.fromkeys(
    ("abs", "ceil", "convert", "floor", "negate", "round_nearest_even", "sign"), LibraryCost()
)
