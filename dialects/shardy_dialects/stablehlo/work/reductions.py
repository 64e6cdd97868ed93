"""Reductions over dimensions, and scatters.

As in XLA's hlo_cost_analysis.cc::HandleReduce and HandleScatter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from shardy_dialects.stablehlo.attributes import parse_dimension_numbers, parse_enum
from shardy_dialects.stablehlo.definitions import attribute
from shardy_dialects.stablehlo.work.elementwise import region_work
from shardy_dialects.stablehlo.work.library import LibraryCost
from shardy_py.ir.graph.program import Block, Op, Value
from shardy_py.ir.graph.types import TensorType
from shardy_py.ir.interfaces.costs import Part
from shardy_py.plugins import CostOpInterface, OpShapes, OpWork
from shardy_py.sharding.rule_builder import tensor_shape


class ReduceCost(LibraryCost):
    """A reduction: its region runs once per element that disappears."""

    def get_work(self, op: Op, shapes: OpShapes) -> OpWork:
        """Return the work of the region times the elements that disappear."""
        runs = max(0, prod(shapes.operands[0]) - prod(shapes.results[0]))
        flops, transcendentals = region_work(op)
        return OpWork(flops * runs, transcendentals * runs)

    def get_parts(self, op: Op) -> Sequence[Part | None]:
        """Return which results are the largest or the smallest elements, alone or beside their places.

        XLA:CPU takes the largest ones where ``jnp.argmax`` finds their places, which looks for NaN, too.
        """
        count, type_ = len(op.results), op.results[0].type
        if not isinstance(type_, TensorType) or type_.element_type not in _KEPT_TYPES:
            return ()
        found = _extreme(op.regions[0].blocks[0], count) if op.regions and op.regions[0].blocks else None
        if found is None:
            return ()
        return ((f"{found} {attribute(op, 'dimensions', ())}", (0, count)), *[None] * (count - 1))


def _extreme(block: Block, count: int) -> str | None:
    """Return the op of scalars that gives the first result of a region that reduces, if that is an extreme."""
    ending = block.terminator
    if ending is None or len(ending.operands) != count or len(block.arguments) != 2 * count:
        return None
    made, pair = ending.operands[0].defining_op, (block.arguments[0], block.arguments[count])
    if made is None:
        return None
    if count == 1:
        is_extreme = made.name in _EXTREMES.values() and set(made.operands) == set(pair)
        return made.name if is_extreme else None
    if made.name != "stablehlo.select" or tuple(made.operands[1:]) != pair:
        return None
    choice = made.operands[0].defining_op
    if choice is None or choice.name != "stablehlo.or":
        return None
    tests = {_comparison(value.defining_op): value for value in choice.operands}
    unequal = ("NE", pair[0], pair[0])
    return next((name for said, name in _EXTREMES.items() if {(said, *pair), unequal} == set(tests)), None)


_KEPT_TYPES = ("f32", "f64")
"""The types that XLA:CPU finds them in; narrower ones are converted before."""
_EXTREMES = {"GT": "stablehlo.maximum", "LT": "stablehlo.minimum"}


def _comparison(op: Op | None) -> tuple[object, ...]:
    """Return the direction of a comparison, and what it compares."""
    if op is None or op.name != "stablehlo.compare":
        return ()
    return (parse_enum(str(attribute(op, "comparison_direction"))), *op.operands)


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

    def is_branching(self, op: Op) -> bool:
        """Return the same."""
        return _has_one_place(op)


def _has_one_place(op: Op) -> bool:
    """Return whether a scatter writes one window, as ``x.at[i].set(y)`` does; XLA updates a slice then.

    As in XLA's scatter_expander.cc, whose loop over the places has one iteration.
    """
    windows = parse_dimension_numbers(str(attribute(op, "scatter_dimension_numbers", ""))).dims("update_window_dims")
    sizes = tensor_shape(op.operands[-1])
    return len(op.results) == 1 and all(size == 1 for dim, size in enumerate(sizes) if dim not in windows)


def _scatters_parts(op: Op, shapes: OpShapes) -> bool:
    """Return whether each device scatters a part of the updates into a tensor of its own, and all of them are summed.

    As in XLA's gather_scatter_handler.cc::PartitionScatterIndexPassthroughDimensions, where all devices but one start
    from the neutral element, by a selection. What is filled with that element already needs none.
    """
    if _is_filled(op.operands[0]):
        return False
    numbers = parse_dimension_numbers(str(attribute(op, "scatter_dimension_numbers", "")))
    whole, local = tensor_shape(op.operands[-1]), shapes.operands[-1]
    windows = numbers.dims("update_window_dims")
    scattered = [dim for dim in range(len(whole)) if dim not in windows]
    vector, batched = numbers.dims("index_vector_dim"), numbers.dims("scatter_indices_batching_dims")
    index_dims = [dim for dim in range(len(shapes.operands[len(op.results)])) if dim not in vector]
    parallel = {dim for dim, index_dim in zip(scattered, index_dims, strict=False) if index_dim in batched}
    return any(local[dim] < whole[dim] for dim in scattered if dim not in parallel)


def _has_part_of_target(op: Op, shapes: OpShapes) -> bool:
    """Return whether a device has a part of the places that updates are scattered to."""
    numbers = parse_dimension_numbers(str(attribute(op, "scatter_dimension_numbers", "")))
    whole, local = tensor_shape(op.operands[0]), shapes.operands[0]
    return any(local[dim] < whole[dim] for dim in numbers.dims("scatter_dims_to_operand_dims"))


def _is_filled(value: Value) -> bool:
    """Return whether a value is a constant, or one number in all places."""
    made = value.defining_op
    while made is not None and made.name == "stablehlo.broadcast_in_dim":
        made = made.operands[0].defining_op
    return made is not None and not made.operands and attribute(made, "value") is not None


COSTS: Mapping[str, CostOpInterface] = {"reduce": ReduceCost(), "scatter": ScatterCost()}
