"""Outcomes of steps, each computed once, and shared by the runs of a process.

The outcome of a visit depends on the rule, directions, strategy and shardings of the step only. A program repeats the
same few hundred combinations over and over, so outcomes are kept under that key.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from math import prod
from threading import Lock

from shardy_py.propagation.sharding_table import ShardingTable
from shardy_py.propagation.steps.aggressive import propagate_aggressive
from shardy_py.propagation.steps.basic import propagate_basic
from shardy_py.propagation.steps.factors import NO_LISTENER, Projection, StepContext, StepListener, Strategy, Updates
from shardy_py.propagation.steps.whole_axis import WholeAxisRule, WholeAxisTensor, propagate_whole_axes, whole_axis_rule
from shardy_py.schedule.builtin import FACTOR_KINDS
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.projection import TensorFactorShardings, project, unproject
from shardy_py.sharding.rule import OpShardingRule, TensorMapping
from shardy_py.sharding.tensor import TensorSharding
from shardy_py.support.identity import identity
from shardy_py.values import define

Directions = tuple[int, ...]
"""The direction of every factor, as the integer of a `Direction`: enum members hash slowly."""

Outcome = tuple[tuple[int, int], ...]
"""The (slot position in the step, new sharding id) of every tensor that changes, operands first."""

BLOCKED = len(FACTOR_KINDS)
"""Stands for the kind of a blocked factor, behind the numbers of the kinds."""


def rule_class(rule: OpShardingRule) -> tuple[object, ...]:
    """Return a key that is equal for rules with which a step does the same to the same shardings.

    A size matters where a dimension has several factors, which share its axes by size; of the other sizes only which
    tensor is larger than which.
    """
    sizes, mappings = rule.factor_sizes, rule.mappings
    distinct = dict.fromkeys(mappings)
    return (
        len(sizes),
        len(rule.operand_mappings),
        mappings,
        _ranks(sizes, mappings) if len(distinct) > 1 else (),
        tuple([sizes[factor] for mapping in distinct for dim in mapping if len(dim) > 1 for factor in dim]),
        rule.reduction_factors,
        rule.need_replication_factors,
        rule.permutation_factors,
        rule.blocked_propagation_factors,
    )


def _ranks(sizes: Sequence[int], mappings: Iterable[TensorMapping]) -> tuple[int, ...]:
    """Return the rank of every tensor by its number of elements."""
    volumes = [prod(map(sizes.__getitem__, {*chain.from_iterable(mapping)})) for mapping in mappings]
    return tuple(map(sorted({*volumes}).index, volumes))


def factor_kinds(rule: OpShardingRule) -> tuple[int, ...]:
    """Return the kind of every factor of a rule, as an index into `FACTOR_KINDS`, or `BLOCKED`."""
    kinds = [0] * len(rule.factor_sizes)
    for kind, factors in (
        # Where a factor is said to be of several kinds, the last one counts, as in `OpShardingRule.kind`.
        (3, rule.permutation_factors),
        (2, rule.need_replication_factors),
        (1, rule.reduction_factors),
        (BLOCKED, rule.blocked_propagation_factors),
    ):
        for factor in factors:
            kinds[factor] = kind
    return tuple(kinds)


class StepMemo(dict[tuple[int, ...], Outcome]):
    """Outcomes of all steps with one class of rules and one `MemoKey`, by their shardings.

    A missing outcome is computed at once: a look-up costs nothing but the one in the dictionary.
    """

    __slots__ = ("_context", "_outcomes", "_rule_id")

    def __init__(self, outcomes: StepOutcomes, rule_id: int, context: MemoKey) -> None:
        self._outcomes = outcomes
        self._rule_id = rule_id
        self._context = context

    def __missing__(self, ids: tuple[int, ...]) -> Outcome:
        outcome = self[ids] = self._outcomes.compute(self._rule_id, self._context, ids)
        return outcome


@define(frozen=True)
class MemoKey:
    """Key of the outcomes of a step, besides the class of its rule and its shardings.

    Attributes:
        directions: One direction per factor, blocked factors included.
        strategy: Basic or aggressive.
        is_elementwise: Whether the op counts as elementwise.
        conservative: Whether sub-axes may not be introduced.
    """

    directions: Directions
    strategy: Strategy
    is_elementwise: bool = False
    conservative: bool = False


class _Nothing(dict[tuple[int, ...], Outcome]):
    """Empty outcomes, of steps without a direction along any factor."""

    def __missing__(self, ids: tuple[int, ...]) -> Outcome:
        return ()


NOTHING: dict[tuple[int, ...], Outcome] = _Nothing()


class _WholeAxisRules(dict[int, WholeAxisRule | None]):
    """Fast forms of rules by class, computed when they are looked up."""

    __slots__ = ("_rules",)

    def __init__(self, rules: Sequence[OpShardingRule]) -> None:
        self._rules = rules

    def __missing__(self, rule_id: int) -> WholeAxisRule | None:
        outcome = self[rule_id] = whole_axis_rule(self._rules[rule_id])
        return outcome


class StepOutcomes:
    """Outcomes of steps, computed on demand and kept; threads may share them, as nothing kept ever changes.

    Attributes:
        table: The interned shardings.
        rules: One rule of every class of rules (see `rule_class`), by its id.
        kinds: The kinds of the factors of a class (see `factor_kinds`), by its id.
        whole_axis_rules: The fast form of the rule of a class (see `whole_axis_rule`), or None, by its id.
    """

    __slots__ = (
        *("_class_ids", "_computed", "_lock", "_memos", "_rule_ids", "_views"),
        *("kinds", "rules", "table", "whole_axis_rules"),
    )

    def __init__(self, table: ShardingTable) -> None:
        self.table = table
        self.rules: list[OpShardingRule] = []
        self.kinds: list[tuple[int, ...]] = []
        self.whole_axis_rules = _WholeAxisRules(self.rules)
        # By identity, as most rules are asked about once; the rules stay alive with the entries.
        self._rule_ids: dict[int, tuple[int, OpShardingRule]] = {}
        self._class_ids: dict[tuple[object, ...], int] = {}
        self._views: dict[tuple[int, int, int], TensorFactorShardings] = {}
        self._memos: dict[tuple[object, ...], StepMemo] = {}
        self._computed = 0
        self._lock = Lock()

    @property
    def size(self) -> int:
        """The number of rules, shardings and outcomes that are kept."""
        return len(self._rule_ids) + len(self.table.values) + self._computed

    def intern_rule(self, rule: OpShardingRule) -> int:
        """Return the id of the class of a rule."""
        known = self._rule_ids.get(identity(rule))
        if known is not None:
            return known[0]
        key = rule_class(rule)
        with self._lock:
            class_id = self._class_ids.get(key)
            if class_id is None:
                class_id = self._class_ids[key] = len(self.rules)
                self.rules.append(rule)
                self.kinds.append(factor_kinds(rule))
            self._rule_ids[identity(rule)] = class_id, rule
        return class_id

    def memo(
        self,
        rule_id: int,
        directions: Directions,
        strategy: Strategy,
        *,
        is_elementwise: bool = False,
        conservative: bool = False,
    ) -> StepMemo:
        """Return the outcomes of visits, by shardings.

        Args:
            rule_id: The class of the rule.
            directions: The direction of every factor.
            strategy: Basic or aggressive.
            is_elementwise: Whether the op counts as elementwise.
            conservative: Whether sub-axes may not be introduced.
        """
        key = (rule_id, directions, strategy is Strategy.BASIC, is_elementwise, conservative)
        cached = self._memos.get(key)
        if cached is None:
            context = MemoKey(directions, strategy, is_elementwise, conservative)
            cached = self._memos.setdefault(key, StepMemo(self, rule_id, context))
        return cached

    def outcome(
        self,
        rule_id: int,
        directions: Directions,
        strategy: Strategy,
        ids: tuple[int, ...],
        *,
        is_elementwise: bool = False,
        conservative: bool = False,
    ) -> Outcome:
        """Return the outcome of a visit.

        Args:
            rule_id: The class of the rule.
            directions: The direction of every factor.
            strategy: Basic or aggressive.
            ids: The shardings of operands and results.
            is_elementwise: Whether the op counts as elementwise.
            conservative: Whether sub-axes may not be introduced.
        """
        memo = self.memo(rule_id, directions, strategy, is_elementwise=is_elementwise, conservative=conservative)
        return memo[ids]

    def compute(self, rule_id: int, context: MemoKey, ids: tuple[int, ...]) -> Outcome:
        """Compute the outcome of a visit.

        Mirrors basic_propagation.cc::propagateTensorShardings.
        """
        self._computed += 1
        table = self.table
        # Without an axis on any dimension there is nothing to propagate.
        if not any(map(table.has_axes.__getitem__, ids)):
            return ()
        common = table.common_mesh(ids)
        if common is None or common[1].is_maximal:
            return ()
        name, mesh = common
        if context.strategy is Strategy.AGGRESSIVE:
            whole_axis_tensors = self._whole_axis_tensors(rule_id, ids)
            if whole_axis_tensors is not None:
                return self._compute_whole_axes(rule_id, context, ids, whole_axis_tensors, name, mesh)
        rule = self.rules[rule_id]
        sizes = rule.factor_sizes
        mappings = rule.mappings
        values = table.values
        split = len(rule.operand_mappings)
        views = [self._view(rule_id, position, ids[position], mesh) for position in range(len(mappings))]
        projection = Projection(views[:split], views[split:])
        tensors = projection.tensors
        step = StepContext(sizes, context.directions, mesh, context.conservative, context.is_elementwise)
        updated = propagate_step(projection, step, context.strategy)
        changes = []
        for position, changed in enumerate(updated):
            if not changed:
                continue
            new = unproject(tensors[position], mappings[position], sizes, name, mesh)
            old = values[ids[position]]
            if new != old and not (old is None and new.empty_axes):
                changes.append((position, table.intern(new)))
        return tuple(changes)

    def _view(self, rule_id: int, position: int, sharding_id: int, mesh: Mesh) -> TensorFactorShardings:
        """Return the factor shardings of one tensor; they are computed once and copied."""
        key = (rule_id, position, sharding_id)
        view = self._views.get(key)
        if view is None:
            rule = self.rules[rule_id]
            sharding = self.table.values[sharding_id]
            view = self._views[key] = project(sharding, rule.mappings[position], rule.factor_sizes, mesh)
        return view.copy()

    def _whole_axis_tensors(self, rule_id: int, ids: tuple[int, ...]) -> list[WholeAxisTensor] | None:
        """Return the tensors of a step if the fast form of its rule applies to them."""
        axis_rule = self.whole_axis_rules[rule_id]
        if axis_rule is None:
            return None
        find, tensors = self.table.whole_axis_tensor, []
        for index, rank in enumerate(axis_rule.ranks):
            tensor = find(ids[index], rank)
            if tensor is None or len(tensor.dims) != rank:
                return None
            tensors.append(tensor)
        return tensors

    def _compute_whole_axes(
        self,
        rule_id: int,
        context: MemoKey,
        ids: tuple[int, ...],
        tensors: Sequence[WholeAxisTensor],
        name: str | Mesh,
        mesh: Mesh,
    ) -> Outcome:
        axis_rule, table = self.whole_axis_rules[rule_id], self.table
        assert axis_rule is not None, "only asked where the rule has a fast form"
        changes = propagate_whole_axes(
            axis_rule, tensors, context.directions, mesh, is_elementwise=context.is_elementwise
        )
        outcome = []
        for tensor in sorted(changes):
            old = tensors[tensor]
            if not old.elsewhere:
                outcome.append((tensor, table.intern_whole_axes(name, tuple(changes[tensor]), old.closed)))
                continue
            dims = tuple(map(table.dimension, changes[tensor], old.closed))
            sharding = table.values[ids[tensor]]
            assert sharding is not None, "a missing sharding has no axes elsewhere"
            new = TensorSharding(name, dims, sharding.replicated_axes, sharding.unreduced_axes, sharding.reduction_op)
            outcome.append((tensor, table.intern(new)))
        return tuple(outcome)


def project_step(rule: OpShardingRule, shardings: Sequence[TensorSharding | None], mesh: Mesh) -> Projection:
    """Return the factor shardings of all operands and results of a step."""
    mappings = (*rule.operand_mappings, *rule.result_mappings)
    tensors = [
        project(sharding, mapping, rule.factor_sizes, mesh)
        for sharding, mapping in zip(shardings, mappings, strict=True)
    ]
    split = len(rule.operand_mappings)
    return Projection(tensors[:split], tensors[split:])


def propagate_step(
    projection: Projection, context: StepContext, strategy: Strategy, listener: StepListener = NO_LISTENER
) -> Updates:
    """Propagate along the factors of a step, in place; return which tensors changed."""
    propagate = propagate_basic if strategy is Strategy.BASIC else propagate_aggressive
    return propagate(projection, context, listener)


MANY_MESHES = 8
"""The limit on the meshes, or sets of meshes, with outcomes that are kept."""
MANY_OUTCOMES = 20_000
"""The limit on the rules, shardings and outcomes kept for the same meshes; the next run after that starts anew."""

_Meshes = tuple[tuple[str, Mesh], ...]


class OutcomeMemory:
    """Outcomes by meshes, the ones asked for last; threads may share it.

    An outcome depends on rule, directions, strategy, shardings and meshes only, so that those of one program hold in
    all others. Nothing of a program is kept but its rules and shardings.
    """

    def __init__(self) -> None:
        self._kept: OrderedDict[_Meshes, StepOutcomes] = OrderedDict()
        self._lock = Lock()

    def of(self, meshes: Mapping[str, Mesh]) -> StepOutcomes:
        """Return the outcomes for programs with some meshes, new ones where too many are kept."""
        key = tuple(meshes.items())
        with self._lock:
            outcomes = self._kept.pop(key, None)
            if outcomes is None or outcomes.size > MANY_OUTCOMES:
                outcomes = StepOutcomes(ShardingTable(dict(meshes)))
            self._kept[key] = outcomes
            if len(self._kept) > MANY_MESHES:
                self._kept.popitem(last=False)
        return outcomes


SHARED = OutcomeMemory()
"""The memory of this process."""
