"""Decisions of one factor propagation, as the engine reports them, with the obstacle to each axis that was cut off."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from itertools import chain

from shardy_py.propagation.steps.factors import Direction, Projection, Rank, StepContext
from shardy_py.sharding.axes import AxisRef, prefix_without_overlap
from shardy_py.sharding.axis_lists import PrefixStatus, prefix_status
from shardy_py.sharding.projection import Axes, FactorSharding, TensorFactorShardings
from shardy_py.sharding.rule import FactorKind, OpShardingRule
from shardy_py.trace.reasons import Reason
from shardy_py.values import frozen


@frozen
class Obstacle:
    """Reason why a tensor does not take all of an axis.

    Args:
        reason: The reason that it gives.
        tensor: The position of the tensor it belongs to, where there is one.
        factor: The factor it belongs to, where there is one.
        by: The axes in the way.
        detail: More about it.
    """

    reason: Reason
    tensor: int | None = None
    factor: int | None = None
    by: Axes = ()
    detail: str = ""


def obstacle_within(
    axis: AxisRef,
    tensor: TensorFactorShardings,
    entry: FactorSharding,
    prev_sharded_size: int,
    factor_size: int,
    position: int,
) -> Obstacle:
    """Return why a tensor does not take all of an axis along a factor (see `prefix_within_factor`)."""
    rest: AxisRef | None = axis
    for reason, axes in ((Reason.REPLICATED, tensor.replicated_axes), (Reason.UNREDUCED, tensor.unreduced_axes)):
        shorter = prefix_without_overlap(rest, axes) if rest is not None else None
        if shorter is None:
            return Obstacle(reason, position, by=overlapping(axis, axes))
        if shorter != rest and _fits(shorter, entry):
            return Obstacle(reason, position, by=overlapping(axis, axes))
        rest = shorter
    if entry.is_closed:
        return Obstacle(Reason.CLOSED, position)
    if entry.overflow_axes:
        return Obstacle(Reason.DOES_NOT_DIVIDE, position, by=entry.overflow_axes, detail="the axes behind the factor")
    detail = f"{factor_size} is not divisible by what is before it"
    if factor_size % prev_sharded_size == 0:
        detail = f"{factor_size // prev_sharded_size} of {factor_size} are left for it"
    return Obstacle(Reason.DOES_NOT_DIVIDE, position, detail=detail)


def _fits(axis: AxisRef, entry: FactorSharding) -> bool:
    """Return whether the rest of an axis is not stopped by the factor itself."""
    return (not entry.is_closed and not entry.overflow_axes) or any(held.contains(axis) for held in entry.axes)


def obstacle_across(
    axis: AxisRef, tensor: TensorFactorShardings, before: TensorFactorShardings, factor: int, position: int
) -> Obstacle:
    """Return which other factor of a tensor has an axis, or a part of it (see `prefix_across_factors`).

    Args:
        axis: The axis.
        tensor: The tensor as it is now.
        before: The tensor as it was before the step.
        factor: The factor that wants the axis.
        position: The position of the tensor.
    """
    for other, entry in tensor.factors.items():
        obstacles = overlapping(axis, (*entry.overflow_axes, *entry.axes))
        if other == factor or not obstacles:
            continue
        had = before.factors[other]
        known = overlapping(axis, (*had.overflow_axes, *had.axes))
        return Obstacle(Reason.OVERLAP if known else Reason.LOST, position, other, obstacles)
    raise AssertionError("only asked where another factor is in the way")


def overlapping(axis: AxisRef, axes: Axes) -> Axes:
    """Return the axes that share something with an axis, or could not be used beside it."""
    return tuple(
        other for other in axes if other.name == axis.name and (other.overlaps(axis) or not other.can_coexist(axis))
    )


def obstacle_to_merging(
    projection: Projection, rule: OpShardingRule, context: StepContext, factor: int, source: int, target: int
) -> Obstacle:
    """Return why an axis of one tensor is not among those on which all agree along a factor."""
    direction = context.directions[factor]
    if direction == Direction.NONE:
        return _obstacle_of_no_direction(rule, factor)
    is_operand = source < len(projection.operands)
    if direction != Direction.BOTH and is_operand != (direction == Direction.FORWARD):
        return Obstacle(Reason.DIRECTION, detail=f"only {str(Direction(direction).name).lower()} at this level")
    source_axes = projection.tensors[source].factors[factor].axes
    tensors = projection.tensors
    for other in chain((target,), range(len(tensors))):
        entry = tensors[other].factors.get(factor)
        if other != source and entry is not None and _conflict(source_axes, entry.axes):
            return Obstacle(Reason.CONFLICT, other, factor, entry.axes)
    raise AssertionError("axes on which no two tensors disagree are merged")


def _obstacle_of_no_direction(rule: OpShardingRule, factor: int) -> Obstacle:
    if factor in rule.blocked_propagation_factors:
        return Obstacle(Reason.BLOCKED)
    kind = rule.kind(factor)
    if kind is not FactorKind.PASS_THROUGH:
        return Obstacle(Reason.FACTOR_KIND, detail=f"a {kind.value} factor")
    return Obstacle(Reason.DIRECTION, detail="not at this level")


def _conflict(first: Axes, second: Axes) -> bool:
    """Return whether neither list is the start of the other."""
    statuses = (prefix_status(first, second), prefix_status(second, first))
    return all(status is PrefixStatus.NOT_A_PREFIX for status in statuses)


@frozen
class Stop:
    """Place where the axes that a tensor could have taken along a factor were cut off.

    Args:
        index: The index of the first axis that was shortened or left out.
        obstacle: Why.
    """

    index: int
    obstacle: Obstacle


class Decisions:
    """Listener of one factor propagation.

    Args:
        projection: The factor shardings; the engine changes them in place, after it reports a decision.
        context: The step.

    Attributes:
        agreed: The axes on which the tensors agree, by factor.
        stops: By tensor and factor, where axes were cut off, first things first.
        ranks: The ranks of the factors that compete; only where the strategy has preferences.
    """

    def __init__(self, projection: Projection, context: StepContext) -> None:
        self.agreed: list[Axes] = [()] * len(context.directions)
        self.stops: dict[tuple[int, int], list[Stop]] = {}
        self.ranks: dict[int, Rank] = {}
        self._tensors = projection.tensors
        self._before = deepcopy(projection).tensors
        self._context = context
        # The first obstacle of the truncation that is under way.
        self._obstacle: Obstacle | None = None

    def agree(self, factor: int, axes: Axes) -> None:
        """Note the axes along a factor on which the tensors agree."""
        self.agreed[factor] = axes

    def rank(self, ranks: Sequence[Rank]) -> None:
        """Note the ranks of the factors that compete."""
        self.ranks.update({rank.factor: rank for rank in ranks})

    def shorten_within(self, position: int, factor: int, axis: AxisRef, prev_sharded_size: int) -> None:
        """Note the obstacle that a tensor has along the factor itself."""
        if self._obstacle is None:
            tensor, size = self._tensors[position], self._context.factor_sizes[factor]
            entry = tensor.factors[factor]
            self._obstacle = obstacle_within(axis, tensor, entry, prev_sharded_size, size, position)

    def shorten_across(self, position: int, factor: int, axis: AxisRef) -> None:
        """Note the obstacle that is another factor of a tensor."""
        if self._obstacle is None:
            self._obstacle = obstacle_across(axis, self._tensors[position], self._before[position], factor, position)

    def truncate(self, positions: Sequence[int], factor: int, axes: Axes, remaining: Axes) -> None:
        """Note where axes were cut off, by the first obstacle since the last truncation."""
        # Without an obstacle all of the axis fits, and it is a sub-axis.
        obstacle = self._obstacle or Obstacle(Reason.CONSERVATIVE)
        self._obstacle = None
        for position in positions:
            self._stop(position, factor, axes, remaining, obstacle)

    def limit(self, position: int, factor: int, axes: Axes, remaining: Axes) -> None:
        """Note the axes that an operand may not take from another one."""
        self._stop(position, factor, axes, remaining, Obstacle(Reason.SIDEWAYS))

    def _stop(self, position: int, factor: int, axes: Axes, remaining: Axes, obstacle: Obstacle) -> None:
        if remaining != axes:
            is_whole = remaining == axes[: len(remaining)]
            index = len(remaining) if is_whole else len(remaining) - 1
            self.stops.setdefault((position, factor), []).append(Stop(index, obstacle))
