"""One visit of a step, with the reason for each axis that a tensor did not get.

The engine propagates once more along the factors of the step and reports its decisions.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy

from attrs import evolve

from shardy_py.explain.record.decisions import Decisions
from shardy_py.explain.record.obstacles import Obstacle, obstacle_to_merging
from shardy_py.explain.record.reasons import Reason, StepMove, StepRefusal
from shardy_py.propagation.step_outcomes import project_step, propagate_step
from shardy_py.propagation.steps.factors import Projection, Rank, StepContext, Strategy, Updates
from shardy_py.sharding.axes import AxisRef
from shardy_py.sharding.axis_lists import axis_set_difference
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.projection import Axes, unproject
from shardy_py.sharding.rule import OpShardingRule, factor_symbol
from shardy_py.sharding.tensor import DimensionSharding, TensorSharding
from shardy_py.values import frozen


@frozen(eq=False)
class StepExplanation:
    """Shardings before and after a visit, and the axes that it accepted and refused.

    Args:
        rule: The rule.
        old: The factor shardings before.
        new: Those after.
        shardings: The shardings of operands, then results, after.
        accepted: The axes that came.
        refused: The axes that did not come, with reasons.
    """

    rule: OpShardingRule
    old: Projection
    new: Projection
    shardings: tuple[TensorSharding | None, ...]
    accepted: tuple[StepMove, ...]
    refused: tuple[StepRefusal, ...]


def explain_step(
    rule: OpShardingRule,
    shardings: Sequence[TensorSharding | None],
    common: tuple[str | Mesh, Mesh],
    directions: Sequence[int],
    strategy: Strategy,
    *,
    is_elementwise: bool = False,
    conservative: bool = False,
) -> StepExplanation:
    """Explain one visit.

    Args:
        rule: The rule.
        shardings: What operands, then results, have.
        common: The mesh they share, as written and itself; not a maximal one.
        directions: The direction of every factor, as the integer of a `Direction`.
        strategy: Basic or aggressive.
        is_elementwise: Whether the op counts as elementwise.
        conservative: Whether sub-axes may not be introduced.
    """
    name, mesh = common
    old = project_step(rule, shardings, mesh)
    new = deepcopy(old)
    context = StepContext(rule.factor_sizes, tuple(directions), mesh, conservative, is_elementwise)
    decisions = Decisions(new, context)
    updated = propagate_step(new, context, strategy, decisions)
    after = _after(rule, shardings, new, updated, name, mesh)
    return _Reporter(rule, old, new, after, decisions, context).report()


def _after(
    rule: OpShardingRule,
    before: Sequence[TensorSharding | None],
    new: Projection,
    updated: Updates,
    name: str | Mesh,
    mesh: Mesh,
) -> tuple[TensorSharding | None, ...]:
    """Return the shardings after, as the engine would set them."""
    after = list(before)
    for position, tensor in enumerate(new.tensors):
        if not updated[position]:
            continue
        found = unproject(tensor, rule.mappings[position], rule.factor_sizes, name, mesh)
        if not (before[position] is None and found.empty_axes):
            after[position] = found
    return tuple(after)


class _Reporter:
    """Reporter of the axes that every tensor got, and did not get, from the others."""

    def __init__(
        self,
        rule: OpShardingRule,
        old: Projection,
        new: Projection,
        after: tuple[TensorSharding | None, ...],
        decisions: Decisions,
        context: StepContext,
    ) -> None:
        self.rule, self.old, self.new, self.after = rule, old, new, after
        self.decisions, self.context = decisions, context
        self.accepted: list[StepMove] = []
        self.refused: list[StepRefusal] = []

    def report(self) -> StepExplanation:
        """Go through all pairs of tensors and factors."""
        for target, tensor in enumerate(self.old.tensors):
            for factor in tensor.factors:
                self._report_factor(target, factor)
        return StepExplanation(self.rule, self.old, self.new, self.after, tuple(self.accepted), tuple(self.refused))

    def _report_factor(self, target: int, factor: int) -> None:
        mesh = self.context.mesh
        before = self.old.tensors[target].factors[factor].axes
        gained = axis_set_difference(self.new.tensors[target].factors[factor].axes, before, mesh)
        held = [axis for dim in self._dims_of(target) for axis in dim.axes]
        arrived = axis_set_difference(gained, axis_set_difference(gained, held, mesh), mesh)
        for axis in arrived:
            self._accept(target, factor, axis)
        for source, tensor in enumerate(self.old.tensors):
            if source == target or factor not in tensor.factors:
                continue
            for axis in axis_set_difference(self._overflow(source, factor), held, mesh):
                self._note(target, source, factor, axis, self._overflow_obstacle(source, factor))
            offered = axis_set_difference(tensor.factors[factor].axes, before, mesh)
            for axis in axis_set_difference(offered, arrived, mesh):
                self._refuse(target, source, factor, axis, gained)

    def _overflow(self, source: int, factor: int) -> Axes:
        """Return the axes of a dimension that do not divide its factors, where the given one is among the latter."""
        blocking = self._blocking_factor(source, factor)
        return () if blocking is None else self.old.tensors[source].factors[blocking].overflow_axes

    def _blocking_factor(self, source: int, factor: int) -> int | None:
        """Return the factor, the given one or one before it in its dimension, that has overflow axes."""
        entries = self.old.tensors[source].factors
        for factors in self.rule.mappings[source]:
            if factor in factors:
                majors = factors[: factors.index(factor) + 1]
                return next((one for one in majors if entries[one].overflow_axes), None)
        return None

    def _overflow_obstacle(self, source: int, factor: int) -> Obstacle:
        blocking = self._blocking_factor(source, factor)
        assert blocking is not None, "only asked where there are overflow axes"
        detail = f"factor {factor_symbol(blocking)} has size {self.rule.factor_sizes[blocking]}"
        return Obstacle(Reason.DOES_NOT_DIVIDE, source, blocking, detail=detail)

    def _dims_of(self, target: int) -> tuple[DimensionSharding, ...]:
        sharding = self.after[target]
        return () if sharding is None else sharding.dim_shardings

    def _accept(self, target: int, factor: int, axis: AxisRef) -> None:
        for source, tensor in enumerate(self.old.tensors):
            entry = tensor.factors.get(factor)
            if source != target and entry is not None and any(one.contains(axis) for one in entry.axes):
                self.accepted.append(StepMove(target, source, factor, axis))
                return

    def _refuse(self, target: int, source: int, factor: int, axis: AxisRef, gained: Axes) -> None:
        """Note why a tensor has not got an axis; where parts of it have different reasons, part by part."""
        mesh, agreed = self.context.mesh, self.decisions.agreed[factor]
        disputed = axis_set_difference((axis,), agreed, mesh)
        for part in disputed:
            obstacle = obstacle_to_merging(self.old, self.rule, self.context, factor, source, target)
            self._note(target, source, factor, part, obstacle)
        for part in axis_set_difference((axis,), disputed, mesh):
            self._note(target, source, factor, part, self._obstacle(target, factor, part, gained))

    def _obstacle(self, target: int, factor: int, axis: AxisRef, gained: Axes) -> Obstacle:
        """Return why a tensor did not take an axis on which all agree."""
        agreed = self.decisions.agreed[factor]
        if any(one.contains(axis) for one in gained):
            return Obstacle(Reason.STRIDED, target, factor)
        index = next(index for index, one in enumerate(agreed) if one.contains(axis))
        for stop in self.decisions.stops.get((target, factor), ()):
            if stop.index == index:
                return self._completed(stop.obstacle, factor)
            if stop.index < index:
                cause = stop.obstacle
                return Obstacle(Reason.BEHIND, cause.tensor, cause.factor, (agreed[stop.index],), cause.reason.value)
        raise AssertionError("an axis that nothing stops is taken")

    def _completed(self, obstacle: Obstacle, factor: int) -> Obstacle:
        """Return an obstacle with why another factor was preferred, or with the axes that closed a factor."""
        ranks = self.decisions.ranks
        if obstacle.reason is Reason.LOST and obstacle.factor is not None and not self._keeps(obstacle):
            detail = f"factor {factor_symbol(obstacle.factor)} was preferred, and could not keep it"
            return Obstacle(Reason.STRIDED, obstacle.tensor, obstacle.factor, obstacle.by, detail)
        if obstacle.reason is Reason.LOST and obstacle.factor in ranks:
            return evolve(obstacle, detail=_preference(ranks[obstacle.factor], ranks[factor]))
        if obstacle.reason is Reason.CLOSED and obstacle.tensor is not None:
            blocking = self._blocking_factor(obstacle.tensor, factor)
            # Nothing behind axes that divide no factor may be sharded; that closes factors of open dimensions.
            if blocking is not None and not self.old.tensors[obstacle.tensor].factors[blocking].is_closed:
                return self._overflow_obstacle(obstacle.tensor, factor)
        return obstacle

    def _keeps(self, winner: Obstacle) -> bool:
        """Return whether a factor that took an axis has it in the sharding that comes of it."""
        assert winner.tensor is not None, "a factor takes an axis on some tensor"
        held = [axis for dim in self._dims_of(winner.tensor) for axis in dim.axes]
        return any(one.overlaps(axis) for one in winner.by for axis in held)

    def _note(self, target: int, source: int, factor: int, axis: AxisRef, obstacle: Obstacle) -> None:
        self.refused.append(
            StepRefusal(
                target,
                source,
                factor,
                axis,
                obstacle.reason,
                obstacle.tensor,
                obstacle.factor,
                obstacle.by,
                obstacle.detail,
            )
        )


def _preference(winner: Rank, loser: Rank) -> str:
    """Return why one factor goes before another."""
    if winner.size != loser.size:
        return f"larger tensor: {winner.size} elements, not {loser.size}"
    if winner.sharded != loser.sharded:
        return f"more sharded: {winner.sharded} ways, not {loser.sharded}"
    if winner.tensor != loser.tensor:
        return "equally large tensors: the earlier one"
    return "the same tensor: the earlier factor"
