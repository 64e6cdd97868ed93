"""Common parts of both factor propagation strategies: compatible axes, and conflicts within and across factors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from math import gcd
from typing import NamedTuple, Protocol

from shardy_py.schedule.model import Direction
from shardy_py.sharding.axes import AxisRef, SubAxis, prefix_without_overlap
from shardy_py.sharding.axis_lists import is_strict_prefix
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.projection import Axes, FactorSharding, TensorFactorShardings
from shardy_py.values import frozen


class Strategy(Enum):
    """The two factor propagation strategies; aggressive resolves conflicts, basic does not."""

    BASIC = "basic"
    AGGRESSIVE = "aggressive"


@frozen
class StepContext:
    """Properties of a step for factor propagation, besides its shardings.

    Args:
        factor_sizes: The size of every factor.
        directions: The direction of every factor, as the integer of a `Direction`.
        mesh: The common mesh.
        conservative: Whether sub-axes may not be introduced.
        is_elementwise: Whether the op counts as elementwise.
    """

    factor_sizes: tuple[int, ...]
    directions: tuple[int, ...]
    mesh: Mesh
    conservative: bool
    is_elementwise: bool


@frozen
class Projection:
    """The factor shardings of all operands and results of a step."""

    operands: list[TensorFactorShardings]
    results: list[TensorFactorShardings]

    @property
    def tensors(self) -> list[TensorFactorShardings]:
        """Operands, then results."""
        return [*self.operands, *self.results]


class Rank(NamedTuple):
    """Rank of a factor among those of its step, the larger sizes and the earlier positions first.

    Attributes:
        size: The elements of the largest tensor that has the axes of the factor; -1 for none.
        sharded: The product of these axes where the op is elementwise, else 0.
        tensor: The position of that tensor.
        factor: The factor.
    """

    size: int
    sharded: int
    tensor: int
    factor: int


class StepListener(Protocol):
    """Receiver of the decisions of one factor propagation, in their order; each comes before tensors change by it.

    Tensors are named by their position among operands, then results.
    """

    def agree(self, factor: int, axes: Axes) -> None:
        """Note the axes along a factor on which the tensors agree."""
        ...

    def rank(self, ranks: Sequence[Rank]) -> None:
        """Note the ranks of the factors that compete."""
        ...

    def shorten_within(self, position: int, factor: int, axis: AxisRef, prev_sharded_size: int) -> None:
        """Note that a tensor takes a part of an axis along a factor, or nothing, for reasons of the factor."""
        ...

    def shorten_across(self, position: int, factor: int, axis: AxisRef) -> None:
        """Note that a tensor takes a part of an axis along a factor, or nothing, because of its other factors."""
        ...

    def truncate(self, positions: Sequence[int], factor: int, axes: Axes, remaining: Axes) -> None:
        """Note the axes that remain for tensors after conflicts were removed."""
        ...

    def limit(self, position: int, factor: int, axes: Axes, remaining: Axes) -> None:
        """Note the axes that an operand of an elementwise op may take from another one."""
        ...


@frozen
class _NoListener:
    """Ignore all decisions."""

    def agree(self, factor: int, axes: Axes) -> None: ...

    def rank(self, ranks: Sequence[Rank]) -> None: ...

    def shorten_within(self, position: int, factor: int, axis: AxisRef, prev_sharded_size: int) -> None: ...

    def shorten_across(self, position: int, factor: int, axis: AxisRef) -> None: ...

    def truncate(self, positions: Sequence[int], factor: int, axes: Axes, remaining: Axes) -> None: ...

    def limit(self, position: int, factor: int, axes: Axes, remaining: Axes) -> None: ...


NO_LISTENER: StepListener = _NoListener()


def _merge_compatible(old: Axes, new: Axes, can_expand: bool) -> tuple[Axes, bool]:
    """Return the major axes both lists agree on, and whether later tensors may still add to them.

    Mirrors basic_factor_propagation.cc::getCompatibleMajorAxesInternal.
    """
    if old == new:
        return old, can_expand
    if not new:
        return old, can_expand
    if not old:
        return (new if can_expand else old), can_expand
    result: list[AxisRef] = []
    common = min(len(old), len(new))
    for index in range(common):
        old_axis, new_axis = old[index], new[index]
        if old_axis == new_axis:
            result.append(old_axis)
        elif new_axis.prefix_of(old_axis):
            if index + 1 < len(new):
                # The next axis of the new list cannot be the rest of this one: those would have been merged.
                return (*result, new_axis), False
            result.append(old_axis)
        elif old_axis.prefix_of(new_axis):
            if not can_expand or index + 1 < len(old):
                return (*result, old_axis), False
            result.append(new_axis)
        else:
            return tuple(result), False
    result.extend(old[common:])
    if can_expand:
        result.extend(new[common:])
    return tuple(result), can_expand


def factors_with_axes(projection: Projection) -> list[int]:
    """Return the factors along which some tensor has axes, in order: along the others nothing can propagate."""
    factors = {factor for tensor in projection.tensors for factor, entry in tensor.factors.items() if entry.axes}
    return sorted(factors)


def compatible_major_axes(projection: Projection, factor: int, direction: int) -> Axes:
    """Return the longest axes along a factor on which the tensors agree, other factors aside.

    Mirrors basic_factor_propagation.cc::getCompatibleMajorAxes.

    With one direction only, only the tensors on its source side may contribute axes.
    """
    if direction == Direction.NONE:
        return ()
    backward = direction == Direction.BACKWARD
    first, second = (projection.results, projection.operands) if backward else (projection.operands, projection.results)
    axes: Axes = ()
    can_expand = True
    for tensor in first:
        if entry := tensor.factors.get(factor):
            axes, can_expand = _merge_compatible(axes, entry.axes, can_expand)
    if direction != Direction.BOTH:
        can_expand = False
    for tensor in second:
        if entry := tensor.factors.get(factor):
            axes, can_expand = _merge_compatible(axes, entry.axes, can_expand)
    return axes


def prefix_across_factors(axis: AxisRef, tensor: TensorFactorShardings, factor: int) -> AxisRef | None:
    """Return the largest prefix of ``axis`` that no other factor of the tensor uses.

    Mirrors basic_factor_propagation.cc::compatiblePrefixNoConflictsAcrossFactors.
    """
    result: AxisRef | None = axis
    for other, entry in tensor.factors.items():
        if other == factor:
            continue
        if result is not None:
            result = prefix_without_overlap(result, entry.overflow_axes)
        if result is not None:
            result = prefix_without_overlap(result, entry.axes)
        if result is None:
            return None
    return result


def prefix_within_factor(
    axis: AxisRef,
    tensor: TensorFactorShardings,
    entry: FactorSharding,
    prev_sharded_size: int,
    factor_size: int,
    mesh: Mesh,
) -> AxisRef | None:
    """Return the largest prefix of ``axis`` that the tensor can take along a factor, behind the axes before it.

    Mirrors basic_factor_propagation.cc::compatiblePrefixNoConflictsWithinFactor.

    Args:
        axis: The axis to add.
        tensor: The tensor; its replicated and unreduced axes are not available.
        entry: The tensor's factor sharding.
        prev_sharded_size: The product of the axes before ``axis``.
        factor_size: The size of the factor.
        mesh: The mesh.
    """
    result = prefix_without_overlap(axis, tensor.replicated_axes)
    if result is not None:
        result = prefix_without_overlap(result, tensor.unreduced_axes)
    if result is None:
        return None
    for entry_axis in entry.axes:
        if entry_axis.contains(result):
            return result
    if not entry.is_closed and not entry.overflow_axes:
        if entry.is_minor_most:
            return result
        if factor_size % prev_sharded_size == 0:
            size = result.size(mesh)
            common = gcd(factor_size // prev_sharded_size, size)
            if common == size:
                return result
            if common != 1:
                return AxisRef(result.name, SubAxis(result.pre_size, common))
    # The factor cannot grow by all of it, but what it has may be the start of it.
    if entry.axes and entry.axes[-1].prefix_of(result):
        return entry.axes[-1]
    return None


def truncate_by_conflicts(
    axes: Axes, remove_conflicts: Callable[[AxisRef, int], AxisRef | None], context: StepContext
) -> Axes:
    """Return the major axes up to the first one that has to be shortened or left out.

    Mirrors basic_factor_propagation.cc::truncateAxesByRemovingConflicts.

    Args:
        axes: The axes, major first.
        remove_conflicts: Maps an axis and the product of the sizes before it to the prefix that can stay.
        context: The step.
    """
    prev_sharded_size = 1
    for index, axis in enumerate(axes):
        prefix = remove_conflicts(axis, prev_sharded_size)
        if prefix is None or (context.conservative and prefix.sub_axis is not None):
            return axes[:index]
        if prefix != axis:
            return (*axes[:index], prefix)
        prev_sharded_size *= prefix.size(context.mesh)
    return axes


def expand(tensor: TensorFactorShardings, factor: int, axes: Axes) -> bool:
    """Expand the axes of a tensor along a factor; return whether they became longer.

    Mirrors sharding_projection.cc::expandShardingAxes.
    """
    entry = tensor.factors.get(factor)
    if entry is None or not is_strict_prefix(entry.axes, axes):
        return False
    tensor.factors[factor] = FactorSharding(axes, entry.is_closed, entry.is_minor_most, entry.overflow_axes)
    return True


Updates = Sequence[bool]
"""Per-tensor flags of a step, operands then results: whether the tensor changed."""
