"""Costs of contractions.

As in XLA's hlo_cost_analysis.cc::GetDotFlops.
"""

from __future__ import annotations

from math import prod

from shardy_dialects.stablehlo.attributes import dimension_numbers_of, text_of
from shardy_dialects.stablehlo.costs import LibraryCost, element_types
from shardy_py.ir.graph.program import Op
from shardy_py.plugins import CostOpInterface, OpShapes, OpWork

_LEAST_DIM = 8
"""Of the rows, the columns or the sums of a product."""


def _is_large_product(op: Op, shapes: OpShapes) -> bool:
    """Return whether both operands are matrices, and one dimension of the product is large enough."""
    numbers = dimension_numbers_of(op, "dot_dimension_numbers")
    left, right = shapes.operands
    contracted = prod(left[dim] for dim in numbers.dims("lhs_contracting_dimensions"))
    shared = contracted * prod(left[dim] for dim in numbers.dims("lhs_batching_dimensions"))
    rows, columns = (prod(shape) // max(1, shared) for shape in (left, right))
    return min(rows, columns) > 1 and max(rows, columns, contracted) >= _LEAST_DIM


class DotCost(LibraryCost):
    """A sum of products: two operations for each of them."""

    def _is_in_library(self, op: Op, shapes: OpShapes) -> bool:
        return (
            op.name.endswith(".dot_general")
            and element_types(op) in ({"f32"}, {"f64"})
            and _is_large_product(op, shapes)
        )

    def get_work(self, op: Op, shapes: OpShapes) -> OpWork:
        """Return two operations per element of the result and contracted element."""
        numbers = dimension_numbers_of(op, "dot_dimension_numbers")
        left, right = shapes.operands[:2]
        if op.name.endswith(".dot"):
            return OpWork(2.0 * prod(shapes.results[0]) * left[-1] if left else 1.0)
        pairs = zip(numbers.dims("lhs_contracting_dimensions"), numbers.dims("rhs_contracting_dimensions"), strict=True)
        contracted = prod(min(left[i], right[j]) for i, j in pairs)
        # Without a sum it is a multiplication, as in algebraic_simplifier.cc::HandleDot.
        return OpWork(float(prod(shapes.results[0]) * (2 * contracted if contracted != 1 else 1)))


class EinsumCost(CostOpInterface):
    """A sum of products that is said by letters."""

    def get_work(self, op: Op, shapes: OpShapes) -> OpWork | None:
        """Return two operations per element of the result and of the letters that it lacks; None with an ellipsis."""
        inputs, _, output = text_of(op, "einsum_config").replace(" ", "").partition("->")
        sizes: dict[str, int] = {}
        for text, shape in zip(inputs.split(","), shapes.operands, strict=False):
            if len(text) != len(shape):
                return None
            for letter, size in zip(text, shape, strict=True):
                sizes[letter] = min(size, sizes.get(letter, size))
        contracted = prod(size for letter, size in sizes.items() if letter not in output)
        points = prod(shapes.results[0]) * contracted
        if len(shapes.operands) == 1:
            return OpWork(float(points - prod(shapes.results[0])))
        return OpWork(float(points * (2 if contracted != 1 else 1)))
