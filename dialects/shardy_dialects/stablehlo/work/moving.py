"""Ops that move data: no operations, and only what they touch is read and written.

As in XLA's hlo_cost_analysis.cc::HandleSlice, HandleDynamicSlice, HandleDynamicUpdateSlice and HandleGather.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from shardy_dialects.stablehlo.attributes import parse_dimension_numbers
from shardy_dialects.stablehlo.definitions import attribute
from shardy_dialects.stablehlo.work.library import LibraryCost
from shardy_py.ir.graph.program import Op
from shardy_py.plugins import CostOpInterface, OpShapes, OpWork, Window
from shardy_py.sharding.rule_builder import tensor_shape

_SPLIT, _JOIN = 6, 5
"""Operations per part of a word."""
_MOST_JOINED, _LEAST_ROW = 8, 128
"""The most tensors that kernels join, and the least elements of a row that is rather joined by copies."""
_INDEX_CHECKS = 5.0
"""Operations per index: it is clamped, compared with both bounds of the part, and moved to its start."""


def _has_part_of_table(op: Op, shapes: OpShapes) -> bool:
    """Return whether a device has a part of the rows that the indices of a lookup select.

    As in XLA's gather_scatter_handler.cc::PartitionGatherTrivialSlicedOperandDimensions, which masks what other devices
    have.
    """
    dims = parse_dimension_numbers(str(attribute(op, "dimension_numbers", ""))).dims("start_index_map")
    whole = tensor_shape(op.operands[0])
    return any(shapes.operands[0][dim] < whole[dim] for dim in dims if dim < len(shapes.operands[0]))


class MovingCost(LibraryCost):
    """An op that moves all of its operands."""

    def get_work(self, op: Op, shapes: OpShapes) -> OpWork:
        """Return no operations."""
        return OpWork()

    def is_fusible(self, op: Op) -> bool:
        """Return True."""
        return True


class ConcatenateCost(MovingCost):
    """Operands one behind the other."""

    def is_fusible(self, op: Op) -> bool:
        """Return whether a kernel joins other than by copies: a few tensors, no long rows.

        As in XLA's cpu_instruction_fusion.cc, with the bounds of jaxlib 0.10.2.
        """
        shape = tensor_shape(op.results[0])
        is_along_rows = len(shape) > 1 and attribute(op, "dimension", 0) == len(shape) - 1
        return len(op.operands) <= _MOST_JOINED and not (is_along_rows and shape[-1] >= _LEAST_ROW)

    def get_equal_operand(self, op: Op) -> int | None:
        """Return the only operand that has elements."""
        filled = [number for number, value in enumerate(op.operands) if prod(tensor_shape(value))]
        return filled[0] if len(filled) == 1 else None

    def is_branching(self, op: Op) -> bool:
        """Return True."""
        return True


class BitcastCost(MovingCost):
    """The same bits as elements of another type: XLA shifts words into parts, and parts into words.

    As in XLA's bitcast_dtypes_expander.cc.
    """

    def get_work(self, op: Op, shapes: OpShapes) -> OpWork:
        """Return the operations that split or join words, for each part; none for parts of the same width."""
        given, made = prod(shapes.operands[0]), prod(shapes.results[0])
        return OpWork(float(_SPLIT * made if made > given else _JOIN * given if made < given else 0))


class SliceCost(CostOpInterface):
    """A part of the first operand: a slice, a dynamic slice or a gather."""

    def get_work(self, op: Op, shapes: OpShapes) -> OpWork:
        """Return a read of as many elements as the result has, and the operations of a lookup in a part of a table."""
        elements = float(prod(shapes.results[0]))
        if op.name != "stablehlo.gather":
            return OpWork(reads={0: elements})
        masked = elements + _INDEX_CHECKS * prod(shapes.operands[1]) if _has_part_of_table(op, shapes) else 0.0
        return OpWork(masked, reads={0: elements}, tables=(0,))

    def is_fusible(self, op: Op) -> bool:
        """Return True."""
        return True

    def get_equal_operand(self, op: Op) -> int | None:
        """Return the operand, which a slice equals if it has all of it; a gather may look up elements in any order."""
        return None if op.name == "stablehlo.gather" else 0

    def get_windows(self, op: Op) -> Sequence[Window]:
        """Return how far a static slice shifts its operand along each dimension."""
        starts = attribute(op, "start_indices", ())
        if not isinstance(starts, tuple) or op.name != "stablehlo.slice":
            return ()
        strides = attribute(op, "strides") or (1,) * len(starts)
        place = _place_in_rotation(op)
        starts = tuple(start - (place[1] if place and place[0] == dim else 0) for dim, start in enumerate(starts))
        pairs = zip(starts, strides, tensor_shape(op.operands[0]), tensor_shape(op.results[0]), strict=True)
        return tuple(
            Window(0, dim, dim, 1, stride, -start, is_padded=False)
            for dim, (start, stride, size, out) in enumerate(pairs)
            if size != out
        )


def _place_in_rotation(op: Op) -> tuple[int, int] | None:
    """Return the dimension and the offset at which a slice stands where it is joined with the rest of its operand.

    As in XLA's spmd_partitioner.cc::FindRotateRightPattern.
    """
    users = op.results[0].users
    join = users[0] if len(users) == 1 else None
    if join is None or join.name != "stablehlo.concatenate" or len(join.operands) != 2:
        return None
    parts = [value.defining_op for value in join.operands]
    if any(part is None or part.name != op.name or part.operands[0] is not op.operands[0] for part in parts):
        return None
    dim = attribute(join, "dimension", 0)
    sizes = [tensor_shape(value)[dim] for value in join.operands]
    if sum(sizes) != tensor_shape(op.operands[0])[dim]:
        return None
    return dim, 0 if parts[0] is op else sizes[0]


class GatherCost(SliceCost):
    """A lookup."""

    def is_expensive(self, op: Op) -> bool:
        """Return that no kernel looks up again what another one looked up, as in instruction_fusion.cc."""
        return True


class PadCost(MovingCost):
    """A tensor with padding."""

    def is_branching(self, op: Op) -> bool:
        """Return True."""
        return True

    def get_windows(self, op: Op) -> Sequence[Window]:
        """Return how far it shifts its operand along each dimension."""
        low, high = attribute(op, "edge_padding_low", ()), attribute(op, "edge_padding_high", ())
        padding = zip(low, high, attribute(op, "interior_padding", ()), strict=True)
        return tuple(
            Window(0, dim, dim, 1, 1, before, 1 + between)
            for dim, (before, after, between) in enumerate(padding)
            if before or after or between
        )


class ReverseCost(MovingCost):
    """The elements in reverse order."""

    def get_mirrored_dims(self, op: Op) -> Sequence[int]:
        """Return the dimensions that are reversed."""
        return tuple(attribute(op, "dimensions", ()))


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
    whole, update = tensor_shape(op.operands[0]), tensor_shape(op.operands[1])
    parts = shapes.operands[0] or whole
    return any(parts[dim] < size and update[dim] != size for dim, size in enumerate(whole))


COSTS: Mapping[str, CostOpInterface] = {
    **dict.fromkeys(
        (
            "broadcast",
            "broadcast_in_dim",
            "iota",
            "transpose",
            "reshape",
        ),
        MovingCost(),
    ),
    **dict.fromkeys(("slice", "dynamic_slice"), SliceCost()),
    "concatenate": ConcatenateCost(),
    "gather": GatherCost(),
    "bitcast_convert": BitcastCost(),
    "pad": PadCost(),
    "reverse": ReverseCost(),
    "dynamic_update_slice": UpdateCost(),
}
