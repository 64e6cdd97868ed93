"""Costs of slices, updates, padding and concatenation: only what they touch is read and written.

As in XLA's hlo_cost_analysis.cc::HandleSlice, HandleDynamicSlice and HandleDynamicUpdateSlice.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from shardy_dialects.stablehlo.attributes import integer_of, integers_of
from shardy_dialects.stablehlo.costs import MovingCost
from shardy_dialects.stablehlo.slicing import CONCATENATE, SLICE
from shardy_py.ir.graph.program import Op
from shardy_py.plugins import CostOpInterface, OpShapes, OpWork, Window
from shardy_py.sharding.rule_builder import tensor_shape

_MOST_JOINED, _LEAST_ROW = 8, 128
"""The most tensors that kernels join, and the least elements of a row that is rather joined by copies."""


class ConcatenateCost(MovingCost):
    """Operands one behind the other."""

    def is_fusible(self, op: Op) -> bool:
        """Return whether a kernel joins other than by copies: a few tensors, no long rows.

        As in XLA's cpu_instruction_fusion.cc, with the bounds of jaxlib 0.10.2.
        """
        shape = tensor_shape(op.results[0])
        is_along_rows = len(shape) > 1 and integer_of(op, "dimension") == len(shape) - 1
        return len(op.operands) <= _MOST_JOINED and not (is_along_rows and shape[-1] >= _LEAST_ROW)

    def get_equal_operand(self, op: Op) -> int | None:
        """Return the only operand that has elements."""
        filled = [number for number, value in enumerate(op.operands) if prod(tensor_shape(value))]
        return filled[0] if len(filled) == 1 else None

    def get_windows(self, op: Op) -> Sequence[Window]:
        """Return (): XLA's partitioner sends nothing for the op itself, but for the slices or reshards around it."""
        return ()

    def is_branching(self, op: Op) -> bool:
        """Return True."""
        return True


class SliceCost(CostOpInterface):
    """A part of the first operand: a slice or a dynamic slice."""

    def get_work(self, op: Op, shapes: OpShapes) -> OpWork:
        """Return a read of as many elements as the result has."""
        return OpWork(reads={0: float(prod(shapes.results[0]))})

    def is_fusible(self, op: Op) -> bool:
        """Return True."""
        return True

    def get_equal_operand(self, op: Op) -> int | None:
        """Return the operand, which a slice equals if it has all of it."""
        return 0

    def get_windows(self, op: Op) -> Sequence[Window]:
        """Return how far a static slice shifts its operand along each dimension."""
        if op.name != SLICE:
            return ()
        starts = integers_of(op, "start_indices")
        strides = integers_of(op, "strides") or (1,) * len(starts)
        place = _place_in_rotation(op)
        starts = tuple(start - (place[1] if place and place[0] == dim else 0) for dim, start in enumerate(starts))
        pairs = zip(starts, strides, tensor_shape(op.operands[0]), tensor_shape(op.results[0]), strict=True)
        return tuple(
            Window(0, dim, dim, 1, stride, -start, is_padded=False, is_joined=place is None)
            for dim, (start, stride, size, out) in enumerate(pairs)
            if size != out
        )


def _place_in_rotation(op: Op) -> tuple[int, int] | None:
    """Return the dimension and the offset at which a slice stands where it is joined with the rest of its operand.

    As in XLA's spmd_partitioner.cc::FindRotateRightPattern.
    """
    users = op.results[0].users
    join = users[0] if len(users) == 1 else None
    if join is None or join.name != CONCATENATE or len(join.operands) != 2:
        return None
    parts = [value.defining_op for value in join.operands]
    if any(part is None or part.name != op.name or part.operands[0] is not op.operands[0] for part in parts):
        return None
    dim = integer_of(join, "dimension")
    sizes = [tensor_shape(value)[dim] for value in join.operands]
    if sum(sizes) != tensor_shape(op.operands[0])[dim]:
        return None
    return dim, 0 if parts[0] is op else sizes[0]


class PadCost(MovingCost):
    """A tensor with padding."""

    def is_branching(self, op: Op) -> bool:
        """Return True."""
        return True

    def get_windows(self, op: Op) -> Sequence[Window]:
        """Return how far it shifts its operand along each dimension."""
        low, high = integers_of(op, "edge_padding_low"), integers_of(op, "edge_padding_high")
        padding = zip(low, high, integers_of(op, "interior_padding"), strict=True)
        return tuple(
            Window(0, dim, dim, 1, 1, before, 1 + between)
            for dim, (before, after, between) in enumerate(padding)
            if before or after or between
        )


class UpdateCost(CostOpInterface):
    """The first operand with the second one written into it."""

    def get_updated_operand(self, op: Op) -> int:
        """Return the first one."""
        return 0

    def get_work(self, op: Op, shapes: OpShapes) -> OpWork:
        """Return a write of as many elements as the update has.

        Along a divided dimension of which it changes a part, each device chooses between the update and what it has.
        """
        elements = float(prod(shapes.operands[1]))
        return OpWork(elements if _is_divided(op, shapes) else 0.0, reads={0: 0.0}, writes={0: elements})

    def is_branching(self, op: Op) -> bool:
        """Return True."""
        return True

    def is_fusible(self, op: Op) -> bool:
        """Return True."""
        return True


def _is_divided(op: Op, shapes: OpShapes) -> bool:
    """Return whether an update changes a part of a dimension that is divided."""
    full_shape, update = tensor_shape(op.operands[0]), tensor_shape(op.operands[1])
    parts = shapes.operands[0] or full_shape
    return any(parts[dim] < size and update[dim] != size for dim, size in enumerate(full_shape))
