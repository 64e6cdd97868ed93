"""The axes along which XLA's SPMD partitioner computes an op: those of its result.

As in XLA's dot_handler.cc::PartitionDot, gather_scatter_handler.cc::PartitionGather and
spmd_partitioner.cc::HandleReduce, HandleElementwise, HandleTranspose, HandleConcatenate.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from shardy_py.sharding.axes import AxisRef, axes_size, make_axis
from shardy_py.sharding.axis_lists import any_overlap, greatest_common_prefix, truncate_without_overlap
from shardy_py.sharding.projection import Axes
from shardy_py.sharding.rule import FactorKind
from shardy_py.transforms.finish.reshards.common_axes import non_scalar_tensors
from shardy_py.transforms.finish.reshards.projection import OpProjection, compatible_axes


def find_result_axes(
    projection: OpProjection,
    operands: int,
    *,
    is_result_open: bool = False,
    is_joined: bool = False,
    sizes: Sequence[int] = (),
) -> list[Axes]:
    """Return the axes of every factor.

    Where operands agree along a reduced factor, each device sums its part. All other axes follow from the results, so
    that operands are gathered along axes that results lack; a reduction of one operand computes on it as it is.

    Args:
        projection: The factor shardings; left as they are.
        operands: The number of operands.
        is_result_open: Whether propagation left the results alone, so that they follow the operands.
        is_joined: Whether the op joins or sorts its operands.
        sizes: The number of elements of every tensor.
    """
    compatible = compatible_axes(projection)
    if compatible:
        return compatible
    agreed = None if is_joined else _agreed_axes(projection, operands)
    if agreed is not None:
        return agreed
    found = _choose_axes(projection, operands, is_result_open=is_result_open, sizes=sizes)
    scattered = _scattered(projection, operands, found)
    if scattered and all(sizes):
        parts = _choose_axes(projection, operands, is_result_open=is_result_open, sizes=sizes, gathered=scattered)
        by_memory = (_memory(projection, axes, sizes, range(operands)) for axes in (parts, found))
        return parts if next(by_memory) < next(by_memory) else found
    looked_up = _looked_up(projection, operands, found)
    if not looked_up or not all(sizes) or len(sizes) <= operands:
        return found
    _divide_otherwise(projection, range(operands, len(projection.tensors)), found, allow_fewer=True)
    whole = _choose_axes(projection, operands, is_result_open=is_result_open, sizes=sizes, gathered=looked_up)
    return whole if _is_smaller(projection, operands, sizes, whole, found) else found


def _agreed_axes(projection: OpProjection, operands: int) -> list[Axes] | None:
    """Return the axes of several operands of an elementwise op that are all divided alike, else None.

    Then the result is moved, and not each operand, as measured with jaxlib 0.10.2; a single operand is moved.
    """
    rule = projection.rule
    tensors = [number for number in non_scalar_tensors(rule) if number < operands]
    if len(tensors) < 2 or any(rule.mappings[number] != rule.mappings[-1] for number in tensors):
        return None
    found = [[projection.axes(number, factor) or () for factor in range(rule.num_factors)] for number in tensors]
    return found[0] if all(axes == found[0] for axes in found) else None


def _table_and_places(projection: OpProjection, operands: int) -> tuple[set[int], set[int]] | None:
    """Return the factors of the first of two operands and those of the other one, which may say places in it."""
    found = [number for number in non_scalar_tensors(projection.rule) if number < operands]
    if found[:1] != [0] or len(found) != 2:
        return None
    table, places = (_factors(projection, number) for number in found)
    return table, places


def _factors(projection: OpProjection, number: int) -> set[int]:
    """Return the factors of the dimensions of a tensor."""
    return {factor for dim in projection.rule.mappings[number] for factor in dim}


def _looked_up(projection: OpProjection, operands: int, axes: Sequence[Axes]) -> list[int]:
    """Return the sharded factors of a table that are looked up: those that no other operand has."""
    found = _table_and_places(projection, operands)
    if found is None:
        return []
    _, places = found
    return [factor for factor in projection.rule.reduction_factors if axes[factor] and factor not in places]


def _copied(projection: OpProjection, operands: int) -> Sequence[int]:
    """Return the factors of a table that what is looked up there has whole, and along which the table stays divided.

    As in gather_scatter_handler.cc::PartitionGatherOperandPassthroughDimensions.
    """
    found = _table_and_places(projection, operands)
    if found is None:
        return ()
    (table, places), result = found, _factors(projection, -1)
    # A product has no factor that one operand alone has.
    return sorted(table & result - places) if table - result - places else ()


_MASKED = 1.5
"""Memory of a sum of results that are looked up in parts of a table, by that of the results; measured: 1.25 to 1.95."""


def _is_smaller(
    projection: OpProjection, operands: int, sizes: Sequence[int], whole: Sequence[Axes], summed: Sequence[Axes]
) -> bool:
    """Return whether a whole table and what is found there take less memory than sums of results, with their indices.

    As in gather_scatter_handler.cc::GatherPartitionMethodsOrderedByCost; results and indices are masked.
    """
    masked = _memory(projection, summed, sizes, range(1, operands + 1))
    return _memory(projection, whole, sizes, (0, operands)) < _MASKED * masked


def _memory(projection: OpProjection, axes: Sequence[Axes], sizes: Sequence[int], tensors: Sequence[int]) -> float:
    """Return the number of elements that one device has of some tensors."""
    return sum(sizes[number] / _parts(projection, number, axes) for number in tensors)


def _scattered(projection: OpProjection, operands: int, axes: Sequence[Axes]) -> list[int]:
    """Return the sharded factors of the updates of a scatter that are scattered: those that its operand lacks.

    Devices scatter all updates into their parts of the operand where that takes less memory than parts of the updates
    into the whole one, as gather_scatter_handler.cc::ScatterPartitionMethodsOrderedByCost chooses.
    """
    rule = projection.rule
    tensors = [number for number in non_scalar_tensors(rule) if number < operands]
    if len(tensors) != 3 or tensors[0] != 0 or rule.operand_mappings[0] != rule.result_mappings[0]:
        return []
    own = _factors(projection, 0)
    return [factor for factor in rule.reduction_factors if axes[factor] and factor not in own]


def _choose_axes(
    projection: OpProjection,
    operands: int,
    *,
    is_result_open: bool,
    sizes: Sequence[int],
    gathered: Sequence[int] = (),
) -> list[Axes]:
    """Return the axes of every factor, some of the reduced ones without any."""
    rule = projection.rule
    axes: list[Axes] = [()] * rule.num_factors
    used: Axes = ()
    reduced = [factor for factor in range(rule.num_factors) if rule.kind(factor) is FactorKind.REDUCTION]
    inputs, results = range(operands), range(operands, len(projection.tensors))
    for factor in (one for one in reduced if one not in gathered):
        axes[factor] = truncate_without_overlap(_common_prefix(projection, inputs, factor), used)
        used += axes[factor]
    sharded = [number for number in non_scalar_tensors(rule) if number < operands]
    # A reduction keeps its only operand, and what comes out is resharded.
    leading = sharded[:1] if reduced and len(sharded) == 1 else list(results)
    if is_result_open:
        # What is made of several operands is divided as all of them are.
        is_local = not (rule.need_replication_factors or rule.permutation_factors)
        leading = sharded if is_local else sharded[:1]
    copied = _copied(projection, operands)
    for factor in (*copied, *(one for one in range(rule.num_factors) if one not in copied)):
        if factor in reduced or rule.kind(factor) is FactorKind.NEED_REPLICATION:
            continue
        wanted = (projection.axes(0, factor) if factor in copied else ()) or _first(projection, leading, factor)
        if is_result_open and not wanted:
            wanted = next((found for number in leading if (found := projection.axes(number, factor))), ())
        if not wanted and len(sharded) > 1 and rule.is_batching(factor):
            wanted = _common_prefix(projection, inputs, factor)
        axes[factor] = truncate_without_overlap(wanted, used)
        if axes[factor] != wanted and _is_held_elsewhere(projection, sharded, factor, axes[factor]):
            # Rows that are divided less than in the result are gathered where the other operand has their axes.
            axes[factor] = ()
        used += axes[factor]
    if (
        len(sharded) == 2
        and not gathered
        and sizes
        and all(sizes)
        and not (rule.need_replication_factors or rule.permutation_factors)
    ):
        for factor in reduced:
            if not axes[factor]:
                axes[factor] = _summed_axes(projection, sharded, factor, axes, sizes)
        if not is_result_open:
            _divide_otherwise(projection, leading, axes)
    return axes


def move_to_other_dimension(projection: OpProjection, axes: list[Axes]) -> None:
    """Put the axes of the dimension that is joined or sorted on the first dimension that they divide, in place.

    Operands and results go there and back by all-to-alls, as XLA's spmd_partitioner.cc::HandleSort sends them.
    """
    rule, mesh = projection.rule, projection.mesh
    result = len(projection.tensors) - 1
    kept = _factors(projection, result)
    of_operands = _factors(projection, 0) - kept
    of_operands -= set(rule.reduction_factors)
    for joined in (*rule.need_replication_factors, *sorted(of_operands)):
        holder = 0 if joined in of_operands else result
        freed = truncate_without_overlap(projection.axes(holder, joined) or (), _all_but(axes, joined))
        if not freed:
            continue
        parts = axes_size(freed, mesh)
        others = (dim[0] for dim in rule.mappings[result] if len(dim) == 1)
        free = (one for one in others if one != joined and one not in rule.need_replication_factors)
        chosen = next((one for one in free if rule.factor_sizes[one] % (axes_size(axes[one], mesh) * parts) == 0), None)
        if joined in of_operands:
            axes[joined] = ()
        if chosen is not None:
            axes[chosen] = (*axes[chosen], *freed)


def _all_but(axes: Sequence[Axes], factor: int) -> Axes:
    """Return the axes of all factors but one."""
    return tuple(axis for number, item in enumerate(axes) for axis in item if number != factor)


def _divide_otherwise(
    projection: OpProjection, results: Sequence[int], axes: list[Axes], *, allow_fewer: bool = False
) -> None:
    """Divide factors of results whose axes are summed along as often along axes that are free, in place.

    The result is permuted to where it belongs, as in dot_handler.cc::PartitionDotGroupOnContractingImpl and
    gather_scatter_handler.cc::PartitionGatherTrivialSlicedOperandDimensions.

    Args:
        projection: The factor shardings.
        results: The numbers of the results.
        axes: The axes of every factor.
        allow_fewer: Whether factors may be divided less often than in the results.
    """
    mesh = projection.mesh
    for factor in range(len(axes)):
        wanted = _first(projection, results, factor)
        if not wanted or axes[factor]:
            continue
        size = axes_size(wanted, mesh)
        used = tuple(axis for item in axes for axis in item)
        own = next(
            (found for number in range(results[0]) if (found := _free_axes(projection, number, factor, used))), ()
        )
        if own and not any_overlap(own, wanted):
            # An operand that is divided along other axes stays as it is.
            axes[factor] = own
            continue
        free = [AxisRef(axis.name) for axis in mesh.axes if not any_overlap((AxisRef(axis.name),), used)]
        fitting = next((axis for axis in free if axis.size(mesh) % size == 0), None)
        if fitting is not None:
            axes[factor] = (make_axis(fitting.name, 1, size, mesh),)
        elif allow_fewer:
            axes[factor] = next(((axis,) for axis in free if size % axis.size(mesh) == 0), ())


def _summed_axes(
    projection: OpProjection, operands: Sequence[int], factor: int, axes: Sequence[Axes], sizes: Sequence[int]
) -> Axes:
    """Return the axes along which devices sum parts of a product whose operands disagree there; none to gather them.

    As in dot_handler.cc::PartitionDotGroupOnContractingImpl: operands divided alike follow the larger one. Where only
    one is divided, and both results and operands are divided elsewhere, what sends less is done.
    """
    first, second = sorted(operands, key=lambda number: -sizes[number])
    mesh = projection.mesh
    used = tuple(axis for item in axes for axis in item)
    free = {number: _free_axes(projection, number, factor, used) for number in (first, second)}
    if free[first] and free[second]:
        return free[first] if axes_size(free[first], mesh) == axes_size(free[second], mesh) else ()
    holder, other = (first, second) if free[first] else (second, first)
    found = free[holder]
    if not found or not _is_grouped(projection, operands, axes) or _uses(projection, other, found):
        return ()
    count, result = axes_size(found, mesh), len(projection.tensors) - 1
    gathered = sizes[holder] * (count - 1) / (_parts(projection, holder, axes) * count)
    reduced = 2 * sizes[result] * (count - 1) / (_parts(projection, result, axes) * count)
    return found if reduced <= gathered else ()


def _free_axes(projection: OpProjection, number: int, factor: int, used: Axes) -> Axes:
    """Return the axes of a tensor along a factor; none where another factor takes some of them."""
    axes = projection.axes(number, factor) or ()
    return () if any_overlap(axes, used) else axes


def _is_held_elsewhere(projection: OpProjection, operands: Sequence[int], factor: int, axes: Axes) -> bool:
    """Return whether an operand of a product that lacks a factor is divided along axes of it."""
    others = [number for number in operands if factor not in projection.tensors[number].factors]
    return len(operands) == 2 and any(_uses(projection, number, axes) for number in others)


def _uses(projection: OpProjection, number: int, axes: Axes) -> bool:
    """Return whether a tensor is divided along some of the axes."""
    return any(any_overlap(entry.axes, axes) for entry in projection.tensors[number].factors.values())


def _parts(projection: OpProjection, number: int, axes: Sequence[Axes]) -> int:
    """Return the number of parts into which the axes of the op's factors divide a tensor."""
    return prod(axes_size(axes[factor], projection.mesh) for factor in projection.tensors[number].factors)


def _is_grouped(projection: OpProjection, operands: Sequence[int], axes: Sequence[Axes]) -> bool:
    """Return whether some operand has the axes of the op along a factor already."""
    return any(
        axes[factor] and projection.axes(number, factor) == axes[factor]
        for number in operands
        for factor in range(len(axes))
    )


def _common_prefix(projection: OpProjection, tensors: Sequence[int], factor: int) -> Axes:
    """Return the axes with which the axes of all tensors that have a factor start."""
    found: Axes | None = None
    for number in tensors:
        axes = projection.axes(number, factor)
        if axes is not None:
            found = axes if found is None else greatest_common_prefix(found, axes)
    return found or ()


def _first(projection: OpProjection, tensors: Sequence[int], factor: int) -> Axes:
    """Return the axes of the first tensor that has a factor."""
    return next((axes for number in tensors if (axes := projection.axes(number, factor)) is not None), ())
