"""Decisions of one factor propagation, as the engine reports them, with the obstacle to each axis that was cut off."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy

from shardy_py.propagation.steps.factors import Projection, Rank, StepContext
from shardy_py.sharding.axes import AxisRef
from shardy_py.sharding.projection import Axes
from shardy_py.trace.obstacles import Obstacle, obstacle_across, obstacle_within
from shardy_py.trace.reasons import Reason
from shardy_py.values import frozen


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

    def truncate(self, positions: Sequence[int], factor: int, axes: Axes, kept: Axes) -> None:
        """Note where axes were cut off, by the first obstacle since the last truncation."""
        # Without an obstacle all of the axis fits, and it is a sub-axis.
        obstacle = self._obstacle or Obstacle(Reason.CONSERVATIVE)
        self._obstacle = None
        for position in positions:
            self._stop(position, factor, axes, kept, obstacle)

    def limit(self, position: int, factor: int, axes: Axes, kept: Axes) -> None:
        """Note the axes that an operand may not take from another one."""
        self._stop(position, factor, axes, kept, Obstacle(Reason.SIDEWAYS))

    def _stop(self, position: int, factor: int, axes: Axes, kept: Axes, obstacle: Obstacle) -> None:
        if kept != axes:
            is_whole = kept == axes[: len(kept)]
            index = len(kept) if is_whole else len(kept) - 1
            self.stops.setdefault((position, factor), []).append(Stop(index, obstacle))
