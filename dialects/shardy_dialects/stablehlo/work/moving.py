"""Ops that move data: no operations, and only what they touch is read and written.

As in XLA's hlo_cost_analysis.cc::HandleSlice, HandleDynamicSlice, HandleDynamicUpdateSlice and HandleGather.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from attrs import frozen

from shardy_dialects.stablehlo.definitions import attribute
from shardy_py.ir.graph import Op
from shardy_py.plugins import CostOpInterface, OpShapes, OpWork, Window
from shardy_py.sharding.rule_builder import tensor_shape


@frozen
class MovingCost(CostOpInterface):
    """An op that moves all of its operands."""

    def get_work(self, op: Op, shapes: OpShapes) -> OpWork:
        """Return no operations."""
        return OpWork()

    def is_fusible(self, op: Op) -> bool:
        """Return True."""
        return True


@frozen
class SliceCost(CostOpInterface):
    """A part of the first operand: a slice, a dynamic slice or a gather."""

    def get_work(self, op: Op, shapes: OpShapes) -> OpWork:
        """Return no operations, and a read of as many elements as the result has."""
        tables = (0,) if op.name == "stablehlo.gather" else ()
        return OpWork(reads={0: float(prod(shapes.results[0]))}, tables=tables)

    def is_fusible(self, op: Op) -> bool:
        """Return True."""
        return True

    def get_windows(self, op: Op) -> Sequence[Window]:
        """Return how far a static slice shifts its operand along each dimension."""
        starts = attribute(op, "start_indices", ())
        if not isinstance(starts, tuple) or op.name != "stablehlo.slice":
            return ()
        strides = attribute(op, "strides") or (1,) * len(starts)
        pairs = zip(starts, strides, tensor_shape(op.operands[0]), tensor_shape(op.results[0]), strict=True)
        return tuple(
            Window(0, dim, dim, 1, stride, -start)
            for dim, (start, stride, size, out) in enumerate(pairs)
            if size != out
        )


@frozen
class PadCost(MovingCost):
    """A tensor with padding."""

    def get_windows(self, op: Op) -> Sequence[Window]:
        """Return how far it shifts its operand along each dimension."""
        low, between = attribute(op, "edge_padding_low", ()), attribute(op, "interior_padding", ())
        sizes = zip(low, between, tensor_shape(op.operands[0]), tensor_shape(op.results[0]), strict=True)
        return tuple(
            Window(0, dim, dim, 1, 1, shift, 1 + holes)
            for dim, (shift, holes, size, out) in enumerate(sizes)
            if size != out
        )


@frozen
class UpdateCost(CostOpInterface):
    """The first operand with the second one written into it."""

    def get_work(self, op: Op, shapes: OpShapes) -> OpWork:
        """Return no operations, and a write of as many elements as the update has."""
        return OpWork(reads={0: 0.0}, writes={0: float(prod(shapes.operands[1]))})

    def is_fusible(self, op: Op) -> bool:
        """Return True."""
        return True


COSTS: Mapping[str, CostOpInterface] = {
    **dict.fromkeys(
        (
            "bitcast_convert",
            "broadcast",
            "broadcast_in_dim",
            "concatenate",
            "iota",
            "reverse",
            "transpose",
            "reshape",
        ),
        MovingCost(),
    ),
    **dict.fromkeys(("slice", "dynamic_slice", "gather"), SliceCost()),
    "pad": PadCost(),
    "dynamic_update_slice": UpdateCost(),
}
