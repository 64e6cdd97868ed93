"""Costs of gathers and scatters.

As in XLA's hlo_cost_analysis.cc::HandleGather and HandleScatter.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from shardy_dialects.stablehlo.attributes import dimension_numbers_of
from shardy_dialects.stablehlo.elementwise.cost import region_work
from shardy_dialects.stablehlo.shape import BROADCAST
from shardy_py.ir.graph.program import Op, Value
from shardy_py.plugins import CostOpInterface, OpShapes, OpWork
from shardy_py.sharding.rule_builder import tensor_shape

_INDEX_CHECKS = 5.0
"""Operations per index: it is clamped, compared with both bounds of the part, and moved to its start."""


class GatherCost(CostOpInterface):
    """A lookup."""

    def get_work(self, op: Op, shapes: OpShapes) -> OpWork:
        """Return a read of as many elements as the result has, and the operations of a lookup in a part of a table."""
        elements = float(prod(shapes.results[0]))
        masked = elements + _INDEX_CHECKS * prod(shapes.operands[1]) if _has_part_of_table(op, shapes) else 0.0
        return OpWork(masked, reads={0: elements}, tables=(0,))

    def is_fusible(self, op: Op) -> bool:
        """Return True."""
        return True

    def is_expensive(self, op: Op) -> bool:
        """Return that no kernel looks up again what another one looked up, as in instruction_fusion.cc."""
        return True


def _has_part_of_table(op: Op, shapes: OpShapes) -> bool:
    """Return whether a device has a part of the rows that the indices of a lookup select.

    As in XLA's gather_scatter_handler.cc::PartitionGatherTrivialSlicedOperandDimensions, which masks what other devices
    have.
    """
    dims = dimension_numbers_of(op, "dimension_numbers").dims("start_index_map")
    full_shape = tensor_shape(op.operands[0])
    return any(shapes.operands[0][dim] < full_shape[dim] for dim in dims if dim < len(shapes.operands[0]))


class ScatterCost(CostOpInterface):
    """A scatter: its region runs once per element of the updates, and only the places of updates are touched."""

    def get_work(self, op: Op, shapes: OpShapes) -> OpWork:
        """Return the work of the region times the elements of the updates."""
        count = len(op.results)
        updates = prod(shapes.operands[-1])
        flops, transcendentals = region_work(op)
        touched = dict.fromkeys(range(count), float(updates))
        masked = count * prod(shapes.operands[0]) if _scatters_parts(op, shapes) else 0
        # The places in a part of the operand are those in the whole one less its start.
        masked += prod(shapes.operands[count]) if _has_part_of_target(op, shapes) else 0
        if _has_one_place(op):
            # What lies there is read, combined and chosen if the place is inside; each of its indices is compared.
            masked += updates + 4 * len(shapes.operands[0]) - 1
            return OpWork(flops * updates + masked, transcendentals * updates, touched, touched)
        return OpWork(flops * updates + masked, transcendentals * updates, touched, touched, tuple(range(count)))

    def is_fusible(self, op: Op) -> bool:
        """Return whether it writes to one place, which makes it a slice that is updated."""
        return _has_one_place(op)

    def get_updated_operand(self, op: Op) -> int | None:
        """Return the table, if it writes to one place."""
        return 0 if _has_one_place(op) else None

    def get_overwritten_operands(self, op: Op) -> Sequence[int]:
        """Return the tables, as in hlo_dataflow_analysis.cc::CanShareOperandBufferWithUser."""
        return range(len(op.results))

    def is_branching(self, op: Op) -> bool:
        """Return whether it writes to one place."""
        return _has_one_place(op)


def _has_one_place(op: Op) -> bool:
    """Return whether a scatter writes one window, as ``x.at[i].set(y)`` does; XLA updates a slice then.

    As in XLA's scatter_expander.cc, whose loop over the places has one iteration.
    """
    windows = dimension_numbers_of(op, "scatter_dimension_numbers").dims("update_window_dims")
    sizes = tensor_shape(op.operands[-1])
    return len(op.results) == 1 and all(size == 1 for dim, size in enumerate(sizes) if dim not in windows)


def _scatters_parts(op: Op, shapes: OpShapes) -> bool:
    """Return whether each device scatters a part of the updates into a tensor of its own, and all of them are summed.

    As in XLA's gather_scatter_handler.cc::PartitionScatterIndexPassthroughDimensions, where all devices but one start
    from the neutral element, by a selection. What is filled with that element already needs none.
    """
    if _is_filled(op.operands[0]):
        return False
    numbers = dimension_numbers_of(op, "scatter_dimension_numbers")
    full_shape, local = tensor_shape(op.operands[-1]), shapes.operands[-1]
    windows = numbers.dims("update_window_dims")
    scattered = [dim for dim in range(len(full_shape)) if dim not in windows]
    vector, batched = numbers.dims("index_vector_dim"), numbers.dims("scatter_indices_batching_dims")
    index_dims = [dim for dim in range(len(shapes.operands[len(op.results)])) if dim not in vector]
    parallel = {dim for dim, index_dim in zip(scattered, index_dims, strict=False) if index_dim in batched}
    return any(local[dim] < full_shape[dim] for dim in scattered if dim not in parallel)


def _has_part_of_target(op: Op, shapes: OpShapes) -> bool:
    """Return whether a device has a part of the places that updates are scattered to."""
    numbers = dimension_numbers_of(op, "scatter_dimension_numbers")
    full_shape, local = tensor_shape(op.operands[0]), shapes.operands[0]
    return any(local[dim] < full_shape[dim] for dim in numbers.dims("scatter_dims_to_operand_dims"))


def _is_filled(value: Value) -> bool:
    """Return whether a value is a constant, or one number in all places."""
    producer = value.defining_op
    while producer is not None and producer.name == BROADCAST:
        producer = producer.operands[0].defining_op
    return producer is not None and not producer.operands and producer.attributes.get("value") is not None
