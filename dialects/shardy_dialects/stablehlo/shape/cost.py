"""Costs of ops that change the shape or the order of elements."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from shardy_dialects.stablehlo.attributes import integers_of
from shardy_dialects.stablehlo.costs import MovingCost, element_types
from shardy_py.ir.graph.program import Op
from shardy_py.plugins import OpShapes


class ReverseCost(MovingCost):
    """The elements in reverse order."""

    def get_mirrored_dims(self, op: Op) -> Sequence[int]:
        """Return the dimensions that are reversed."""
        return tuple(integers_of(op, "dimensions"))


class ReshapingCost(MovingCost):
    """An op that a library computes with others, where it keeps the order of dimensions."""

    def get_library_operands(self, op: Op, shapes: OpShapes) -> tuple[int, ...] | None:
        """Return the operands, where the library has the op."""
        dims = integers_of(op, "broadcast_dimensions")
        is_ordered = all(first < second for first, second in pairwise(dims))
        return tuple(range(len(op.operands))) if is_ordered and element_types(op) <= {"f32", "f64", "bf16"} else None
