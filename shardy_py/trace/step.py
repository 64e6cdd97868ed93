"""One visit of a step, with the reason for each axis that a tensor did not get.

The engine propagates once more along the factors of the step and reports its decisions.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from copy import deepcopy
from functools import cached_property

from attrs import evolve, field

from shardy_py.propagation.step_outcomes import project_step, propagate_step
from shardy_py.propagation.steps.factors import Projection, Rank, StepContext, Strategy, Updates
from shardy_py.sharding.axes import AxisRef
from shardy_py.sharding.axis_lists import axis_set_difference
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.projection import Axes, unproject
from shardy_py.sharding.rule import OpShardingRule, factor_symbol
from shardy_py.sharding.tensor import TensorSharding
from shardy_py.trace.decisions import Decisions, Obstacle, obstacle_to_merging
from shardy_py.trace.reasons import Reason, StepMove, StepRefusal
from shardy_py.trace.slots import RuleIndex
from shardy_py.values import frozen


@frozen(eq=False, slots=False)
class StepExplanation:
    """Shardings before and after a visit, and the axes that it accepted and refused.

    All pairs of tensors may refuse axes of each other, so those of one tensor are found when they are asked for.

    Args:
        index: The rule, with the dimensions of its factors.
        old: The factor shardings before.
        new: Those after.
        shardings: The shardings of operands, then results, after.
        reporter: The reporter of what each tensor accepted and refused.
    """

    index: RuleIndex
    old: Projection
    new: Projection
    shardings: tuple[TensorSharding | None, ...]
    reporter: _Reporter = field(repr=False)

    @property
    def rule(self) -> OpShardingRule:
        """The rule."""
        return self.index.rule

    @cached_property
    def accepted(self) -> tuple[StepMove, ...]:
        """The axes that came, tensor by tensor."""
        return tuple([move for target in range(len(self.shardings)) for move in self.accepted_by(target)])

    @cached_property
    def refused(self) -> tuple[StepRefusal, ...]:
        """The axes that did not come, with reasons, tensor by tensor."""
        return tuple([refusal for target in range(len(self.shardings)) for refusal in self.refused_by(target)])

    def accepted_by(self, target: int, factors: Collection[int] | None = None) -> list[StepMove]:
        """Return the axes that came to a tensor.

        Args:
            target: The position of the tensor.
            factors: The factors along which they came; None for all.
        """
        asked = self._factors_of(target, factors)
        return [move for factor in asked for move in self.reporter.report(target, factor)[0]]

    def refused_by(self, target: int, factors: Collection[int] | None = None) -> list[StepRefusal]:
        """Return the axes that did not come to a tensor.

        Args:
            target: The position of the tensor.
            factors: The factors along which they would have come; None for all.
        """
        asked = self._factors_of(target, factors)
        return [refusal for factor in asked for refusal in self.reporter.report(target, factor)[1]]

    def _factors_of(self, target: int, factors: Collection[int] | None) -> Iterable[int]:
        """Return the factors of a tensor, or those of the given ones that it has."""
        of_tensor = self.old.tensors[target].factors
        return of_tensor if factors is None else [factor for factor in dict.fromkeys(factors) if factor in of_tensor]


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
    index = RuleIndex(rule)
    return StepExplanation(index, old, new, after, _Reporter(index, old, new, after, decisions, context))


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
        sharding = unproject(tensor, rule.mappings[position], rule.factor_sizes, name, mesh)
        if not (before[position] is None and sharding.empty_axes):
            after[position] = sharding
    return tuple(after)


_Offers = dict[tuple[Axes, Axes], list[int]]
"""The overflow axes and the axes of tensors along a factor, with the positions of the tensors, in order."""


class _Reporter:
    """Reporter of the axes that every tensor got, and did not get, from the others."""

    def __init__(
        self,
        index: RuleIndex,
        old: Projection,
        new: Projection,
        after: tuple[TensorSharding | None, ...],
        decisions: Decisions,
        context: StepContext,
    ) -> None:
        self.rule, self.old, self.new, self.after = index.rule, old, new, after
        self.index = index
        self.decisions, self.context = decisions, context
        self.before, self.now = old.tensors, new.tensors
        self._reports: dict[tuple[int, int], tuple[list[StepMove], list[StepRefusal]]] = {}
        self._offers: dict[int, _Offers] = {}
        self._held: dict[int, list[AxisRef]] = {}

    def report(self, target: int, factor: int) -> tuple[list[StepMove], list[StepRefusal]]:
        """Return the axes along a factor that a tensor got from the others, and those that it did not get."""
        if (target, factor) not in self._reports:
            self.accepted: list[StepMove] = []
            self.refused: list[StepRefusal] = []
            self._report_factor(target, factor)
            self._reports[target, factor] = self.accepted, self.refused
        return self._reports[target, factor]

    def _report_factor(self, target: int, factor: int) -> None:
        mesh = self.context.mesh
        before = self.before[target].factors[factor].axes
        gained = axis_set_difference(self.now[target].factors[factor].axes, before, mesh)
        held = self._held_by(target)
        arrived = axis_set_difference(gained, axis_set_difference(gained, held, mesh), mesh)
        for axis in arrived:
            self._accept(target, factor, axis)
        offers = self._offers_of(factor)
        missing = {}
        for overflow, axes in offers:
            offered = axis_set_difference(axes, before, mesh)
            lost = axis_set_difference(overflow, held, mesh), axis_set_difference(offered, arrived, mesh)
            if any(lost):
                missing[overflow, axes] = lost
        for source, offer in sorted((source, lost) for lost in missing for source in offers[lost]):
            if source == target:
                continue
            for axis in missing[offer][0]:
                self._note(target, source, factor, axis, self._overflow_obstacle(source, factor))
            for axis in missing[offer][1]:
                self._refuse(target, source, factor, axis, gained)

    def _offers_of(self, factor: int) -> _Offers:
        """Return the tensors by the axes that they have along a factor, those that do not divide it first."""
        if factor not in self._offers:
            offers = self._offers[factor] = {}
            for source, tensor in enumerate(self.before):
                if factor in tensor.factors:
                    offer = self._overflow(source, factor), tensor.factors[factor].axes
                    offers.setdefault(offer, []).append(source)
        return self._offers[factor]

    def _overflow(self, source: int, factor: int) -> Axes:
        """Return the axes of a dimension that do not divide its factors, where the given one is among the latter."""
        blocking = self._blocking_factor(source, factor)
        return () if blocking is None else self.before[source].factors[blocking].overflow_axes

    def _blocking_factor(self, source: int, factor: int) -> int | None:
        """Return the factor, the given one or one before it in its dimension, that has overflow axes."""
        entries = self.before[source].factors
        dimension = self.index.dimensions[source].get(factor)
        if dimension is None:
            return None
        factors = self.index.mappings[source][dimension]
        majors = factors[: factors.index(factor) + 1]
        return next((major for major in majors if entries[major].overflow_axes), None)

    def _overflow_obstacle(self, source: int, factor: int) -> Obstacle:
        blocking = self._blocking_factor(source, factor)
        assert blocking is not None, "only asked where there are overflow axes"
        detail = f"factor {factor_symbol(blocking)} has size {self.rule.factor_sizes[blocking]}"
        return Obstacle(Reason.DOES_NOT_DIVIDE, source, blocking, detail=detail)

    def _held_by(self, target: int) -> list[AxisRef]:
        """Return the axes on the dimensions of a tensor after the visit."""
        if target not in self._held:
            sharding = self.after[target]
            dims = () if sharding is None else sharding.dim_shardings
            self._held[target] = [axis for dim in dims for axis in dim.axes]
        return self._held[target]

    def _accept(self, target: int, factor: int, axis: AxisRef) -> None:
        sources = [
            next((source for source in with_offer if source != target), None)
            for (_, axes), with_offer in self._offers_of(factor).items()
            if any(held.contains(axis) for held in axes)
        ]
        first = min((source for source in sources if source is not None), default=None)
        if first is not None:
            self.accepted.append(StepMove(target, first, factor, axis))

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
        if any(other.contains(axis) for other in gained):
            return Obstacle(Reason.STRIDED, target, factor)
        index = next(index for index, other in enumerate(agreed) if other.contains(axis))
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
            if blocking is not None and not self.before[obstacle.tensor].factors[blocking].is_closed:
                return self._overflow_obstacle(obstacle.tensor, factor)
        return obstacle

    def _keeps(self, winner: Obstacle) -> bool:
        """Return whether a factor that took an axis has it in the sharding that comes of it."""
        assert winner.tensor is not None, "a factor takes an axis on some tensor"
        return any(other.overlaps(axis) for other in winner.by for axis in self._held_by(winner.tensor))

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
