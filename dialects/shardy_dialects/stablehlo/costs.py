"""Costs that several families share.

YNNPACK, the library of XLA:CPU, computes some ops in one kernel with the reductions around them, as in XLA's
ynn_matcher.h and ynn_support.cc: IsInstructionPreferredByYnn, IsElementwiseOpSupportedByYnn,
IsBroadcastOpSupportedByYnn, IsReduceLikeOpSupportedByYnn, IsConvolutionOpSupportedByYnn and IsDotSupportedByYnn.
Layouts are not looked at.

Costs without fields are plain classes: a class of attrs takes a millisecond to make, in every process.
"""

from __future__ import annotations

from math import prod

from shardy_dialects.stablehlo.bodies import element_type
from shardy_py.ir.graph.program import Op, Value
from shardy_py.ir.graph.types import TensorType
from shardy_py.plugins import CostOpInterface, OpShapes, OpWork
from shardy_py.support.element_types import mlir_element_bits

_LEAST_ELEMENTS = 4096


class LibraryCost(CostOpInterface):
    """An op that the library may compute."""

    def get_library_operands(self, op: Op, shapes: OpShapes) -> tuple[int, ...] | None:
        """Return all operands, where the library has the op."""
        return tuple(range(len(op.operands))) if self._is_in_library(op, shapes) else None

    def _is_in_library(self, op: Op, shapes: OpShapes) -> bool:
        """Return whether the library has the op."""
        return False


def has_many_elements(shapes: OpShapes) -> bool:
    """Return whether a tensor is large enough for the library, unless the op only moves or multiplies."""
    return max(map(prod, (*shapes.operands, *shapes.results))) >= _LEAST_ELEMENTS


def element_types(op: Op) -> set[str]:
    """Return the element types of all operands and results."""
    return {element_type(value) for value in (*op.operands, *op.results)}


def element_bytes(value: Value) -> int:
    """Return the bytes of an element; 0 for what is no tensor of numbers."""
    bits = mlir_element_bits(value.type.element_type) if isinstance(value.type, TensorType) else None
    return -(-(bits or 0) // 8)


class MovingCost(CostOpInterface):
    """An op that moves all of its operands."""

    def get_work(self, op: Op, shapes: OpShapes) -> OpWork:
        """Return no operations."""
        return OpWork()

    def is_fusible(self, op: Op) -> bool:
        """Return True."""
        return True
