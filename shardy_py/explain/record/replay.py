"""Both factor propagation strategies again, noting where axes were cut off and why."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy

from attrs import define, field, frozen

from shardy_py.explain.record.obstacles import Obstacle, merged_axes, obstacle_across, obstacle_within
from shardy_py.explain.record.reasons import Reason
from shardy_py.propagation.steps.aggressive import limit_to_results, preference, source_tensors
from shardy_py.propagation.steps.factors import (
    Projection,
    StepContext,
    compatible_major_axes,
    expand,
    is_strict_prefix,
    prefix_across_factors,
    prefix_within_factor,
    truncate_by_conflicts,
)
from shardy_py.sharding.axes import AxisRef, axes_size
from shardy_py.sharding.projection import Axes, TensorFactorShardings

Remove = Callable[[AxisRef, int], AxisRef | None]
Why = Callable[[AxisRef, int], Obstacle]


@frozen
class Stop:
    """Where the axes a tensor could have taken along a factor were cut off.

    Args:
        index: The index of the first axis that was shortened or left out.
        obstacle: Why.
    """

    index: int
    obstacle: Obstacle


@frozen
class Rank:
    """How a factor ranks among those of its step, the smaller the better, in the order of the fields.

    Args:
        size: The elements of the largest tensor that has the axes of the factor; -1 for none.
        sharded: The product of these axes where the op is elementwise, else 0.
        tensor: The position of that tensor.
        factor: The factor.
    """

    size: int
    sharded: int
    tensor: int
    factor: int


@define
class Decisions:
    """What a replay found out.

    Attributes:
        merged: The axes on which the tensors agree, by factor.
        updated: Which tensors changed.
        stops: By tensor and factor, where axes were cut off, first things first.
        ranks: How the factors rank; only where the strategy has preferences.
    """

    merged: list[Axes]
    updated: list[bool]
    stops: dict[tuple[int, int], list[Stop]] = field(factory=dict)
    ranks: dict[int, Rank] = field(factory=dict)

    def add(self, target: int, factor: int, before: Axes, after: Axes, obstacle: Obstacle | None) -> None:
        """Note that axes were cut off."""
        if after != before:
            whole = after == before[: len(after)]
            index = len(after) if whole else len(after) - 1
            assert obstacle is not None, "what cuts off axes says why"
            self.stops.setdefault((target, factor), []).append(Stop(index, obstacle))


def _truncate(axes: Axes, remove: Remove, why: Why, context: StepContext) -> tuple[Axes, Obstacle | None]:
    """Cut off axes as the engine does; return what is left, and why the rest is not."""
    found: list[Obstacle] = []

    def noted(axis: AxisRef, prev_sharded_size: int) -> AxisRef | None:
        kept = remove(axis, prev_sharded_size)
        if kept != axis:
            found.append(why(axis, prev_sharded_size))
        if kept is not None and context.conservative and kept.sub_axis is not None:
            found.append(Obstacle(Reason.CONSERVATIVE))
        return kept

    kept = truncate_by_conflicts(axes, noted, context)
    return kept, found[0] if found else None


def replay_basic(projection: Projection, context: StepContext) -> Decisions:
    """Propagate along every factor with the basic strategy, in place."""
    before = deepcopy(projection)
    count = len(projection.tensors)
    decisions = Decisions(merged_axes(projection, context), [False] * count)
    for factor, direction in enumerate(context.directions):
        axes = decisions.merged[factor] = compatible_major_axes(projection, factor, direction)
        if not axes:
            continue
        search = _BasicSearch(projection, before, context, factor)
        kept, obstacle = _truncate(axes, search.compatible_prefix, search.obstacle, context)
        for target, tensor in enumerate(projection.tensors):
            decisions.add(target, factor, axes, kept, obstacle)
            if expand(tensor, factor, kept):
                decisions.updated[target] = True
    return decisions


class _BasicSearch:
    """Looks for the largest prefix of an axis that every tensor can take along a factor."""

    def __init__(self, projection: Projection, before: Projection, context: StepContext, factor: int) -> None:
        self.tensors, self.before, self.context, self.factor = projection.tensors, before.tensors, context, factor
        self._found: Obstacle | None = None

    def obstacle(self, axis: AxisRef, prev_sharded_size: int) -> Obstacle:
        """Return the first thing that stood in the way in the last search."""
        assert self._found is not None, "only asked after something stood in the way"
        return self._found

    def compatible_prefix(self, axis: AxisRef, prev_sharded_size: int) -> AxisRef | None:
        """Return the prefix, as the basic strategy finds it."""
        self._found = None
        result: AxisRef | None = axis
        for position in range(len(self.tensors)):
            assert result is not None, "the search ends with the first tensor that can take nothing"
            shorter = self._prefix_of_tensor(result, position, prev_sharded_size)
            if shorter is None:
                return None
            result = shorter
        return result

    def _prefix_of_tensor(self, axis: AxisRef, position: int, prev_sharded_size: int) -> AxisRef | None:
        tensor, factor, context = self.tensors[position], self.factor, self.context
        across = prefix_across_factors(axis, tensor, factor)
        if across != axis:
            self._note(obstacle_across(axis, tensor, self.before[position], factor, position))
        entry = tensor.factors.get(factor)
        if across is None or entry is None:
            return across
        size = context.factor_sizes[factor]
        within = prefix_within_factor(across, tensor, entry, prev_sharded_size, size, context.mesh)
        if within != across:
            self._note(obstacle_within(across, tensor, entry, prev_sharded_size, size, position))
        return within

    def _note(self, obstacle: Obstacle) -> None:
        if self._found is None:
            self._found = obstacle


def replay_aggressive(projection: Projection, context: StepContext) -> Decisions:
    """Propagate along every factor with the aggressive strategy, in place."""
    decisions = Decisions(merged_axes(projection, context), [False] * len(projection.tensors))
    if any(decisions.merged):
        _Aggressive(projection, context, decisions).run()
    return decisions


class _Aggressive:
    """One replay of the aggressive strategy."""

    def __init__(self, projection: Projection, context: StepContext, decisions: Decisions) -> None:
        self.projection, self.context, self.decisions = projection, context, decisions
        self.before = deepcopy(projection).tensors
        self.order = preference(projection, decisions.merged, context)
        sources = source_tensors(projection, decisions.merged, context)
        for factor, (size, tensor) in enumerate(sources):
            sharded = axes_size(decisions.merged[factor], context.mesh) if context.is_elementwise else 0
            decisions.ranks[factor] = Rank(size, sharded, tensor, factor)

    def run(self) -> None:
        """Give axes to the results, then to the operands, the preferred factors first."""
        tensors, split = self.projection.tensors, len(self.projection.operands)
        for position in (*range(split, len(tensors)), *range(split)):
            for factor in self.order:
                self._take(position, tensors[position], factor)

    def _take(self, position: int, tensor: TensorFactorShardings, factor: int) -> None:
        decisions, context = self.decisions, self.context
        entry, wanted = tensor.factors.get(factor), decisions.merged[factor]
        if entry is None or not wanted:
            return
        size, mesh = context.factor_sizes[factor], context.mesh
        axes, obstacle = _truncate(
            wanted,
            lambda axis, prev: prefix_within_factor(axis, tensor, entry, prev, size, mesh),
            lambda axis, prev: obstacle_within(axis, tensor, entry, prev, size, position),
            context,
        )
        decisions.add(position, factor, wanted, axes, obstacle)
        if not is_strict_prefix(entry.axes, axes):
            return
        free, obstacle = _truncate(
            axes,
            lambda axis, _: prefix_across_factors(axis, tensor, factor),
            lambda axis, _: obstacle_across(axis, tensor, self.before[position], factor, position),
            context,
        )
        decisions.add(position, factor, axes, free, obstacle)
        if free and context.is_elementwise and position < len(self.projection.operands):
            limited = limit_to_results(self.projection, factor, free)
            decisions.add(position, factor, free, limited, Obstacle(Reason.SIDEWAYS))
            free = limited
        if free and expand(tensor, factor, free):
            decisions.updated[position] = True
