"""Shardings and rules as small integers, and what one step makes of its shardings, computed once.

What a visit of a step does depends on its rule, directions, strategy and shardings only. A program repeats the same
few hundred combinations over and over, so the outcome is kept under that key.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from math import prod

from shardy_py.errors import Diagnostic, VerificationError
from shardy_py.propagation.aggressive import propagate_aggressive
from shardy_py.propagation.basic import propagate_basic
from shardy_py.propagation.factors import Projection, StepContext, Strategy, Updates
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.projection import TensorFactorShardings, project, unproject
from shardy_py.sharding.rule import OpShardingRule
from shardy_py.sharding.tensor import TensorSharding, symbol

Directions = tuple[int, ...]
"""The direction of every factor, as the integer of a `Direction`: enum members hash slowly."""

Outcome = tuple[tuple[int, int], ...]
"""The (slot position in the step, new sharding id) of every tensor that changes, operands first."""

NO_SHARDING = 0
"""The id of a missing sharding."""


class ShardingTable:
    """Interned shardings: equal shardings have the same id.

    Attributes:
        meshes: The meshes by name.
        values: Id to sharding.
        spreads: Id to whether a dimension has an axis: without one there is nothing to propagate.
    """

    __slots__ = ("_ids", "_open", "meshes", "spreads", "values")

    def __init__(self, meshes: Mapping[str, Mesh]) -> None:
        self.meshes = meshes
        self.values: list[TensorSharding | None] = [None]
        self.spreads = [False]
        self._ids: dict[TensorSharding, int] = {}
        self._open: dict[tuple[str | Mesh, int], int] = {}

    def intern(self, sharding: TensorSharding | None) -> int:
        """Return the id of a sharding; 0 for None."""
        if sharding is None:
            return NO_SHARDING
        found = self._ids.get(sharding)
        if found is None:
            found = self._ids[sharding] = len(self.values)
            self.values.append(sharding)
            self.spreads.append(any(dim.axes for dim in sharding.dim_shardings))
        return found

    def mesh_of(self, sharding: TensorSharding) -> Mesh:
        """Return the mesh of a sharding, looked up by name unless it is inlined."""
        mesh = sharding.mesh
        if isinstance(mesh, Mesh):
            return mesh
        found = self.meshes.get(mesh)
        if found is None:
            known = ", ".join(map(symbol, self.meshes)) or "none"
            message = f"unknown mesh {symbol(mesh)} in sharding {sharding}"
            raise VerificationError(Diagnostic("unknown-mesh", message, hint=f"the module's meshes are {known}"))
        return found

    def fully_open_like(self, sharding_id: int, rank: int) -> int:
        """Return the id of the fully open sharding of a rank on the mesh of another sharding."""
        sharding = self.values[sharding_id]
        assert sharding is not None, "the sharding that was just set exists"
        key = (sharding.mesh, rank)
        if key not in self._open:
            self._open[key] = self.intern(TensorSharding.fully_open(sharding.mesh, rank))
        return self._open[key]

    def common_mesh(self, ids: Sequence[int]) -> tuple[str | Mesh, Mesh] | None:
        """Return the mesh (as written, and itself) that all shardings share, or None.

        Shardings on empty meshes agree with any other.
        """
        name: str | Mesh | None = None
        mesh: Mesh | None = None
        for sharding_id in ids:
            sharding = self.values[sharding_id]
            if sharding is None:
                continue
            other = self.mesh_of(sharding)
            if mesh is None or mesh.is_empty:
                name, mesh = sharding.mesh, other
            elif not other.is_empty and other != mesh:
                return None
        if name is None or mesh is None:
            return None
        return name, mesh


def rule_class(rule: OpShardingRule) -> tuple[object, ...]:
    """Return a key that is equal for rules with which a step does the same to the same shardings.

    A size matters where a dimension has several factors, which share its axes by size; of the other sizes only which
    tensor is larger than which.
    """
    sizes, mappings = rule.factor_sizes, rule.mappings
    volumes = [prod([sizes[factor] for factor in set(chain.from_iterable(mapping))]) for mapping in mappings]
    ranks = {volume: rank for rank, volume in enumerate(sorted(set(volumes)))}
    shared = [factor for mapping in mappings for dim in mapping if len(dim) > 1 for factor in dim]
    return (
        len(sizes),
        len(rule.operand_mappings),
        mappings,
        tuple([ranks[volume] for volume in volumes]),
        tuple([sizes[factor] for factor in shared]),
        rule.reduction_factors,
        rule.need_replication_factors,
        rule.permutation_factors,
        rule.blocked_propagation_factors,
    )


class Transitions:
    """The outcomes of steps, computed on demand and kept.

    Attributes:
        table: The interned shardings.
        rules: One rule of every class of rules (see `rule_class`), by its id.
    """

    __slots__ = ("_class_ids", "_memo", "_rule_ids", "_views", "rules", "table")

    def __init__(self, table: ShardingTable) -> None:
        self.table = table
        self.rules: list[OpShardingRule] = []
        self._rule_ids: dict[OpShardingRule, int] = {}
        self._class_ids: dict[tuple[object, ...], int] = {}
        self._views: dict[tuple[int, int, int], TensorFactorShardings] = {}
        self._memo: dict[tuple[object, ...], Outcome] = {}

    def intern_rule(self, rule: OpShardingRule) -> int:
        """Return the id of the class of a rule."""
        found = self._rule_ids.get(rule)
        if found is None:
            found = self._rule_ids[rule] = self._class_ids.setdefault(rule_class(rule), len(self.rules))
            if found == len(self.rules):
                self.rules.append(rule)
        return found

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
        """Return what a visit changes.

        Args:
            rule_id: The class of the rule.
            directions: One direction per factor, blocked factors included.
            strategy: Basic or aggressive.
            ids: The shardings of operands and results.
            is_elementwise: Whether the op counts as elementwise.
            conservative: Whether sub-axes may not be introduced.
        """
        key = (rule_id, directions, strategy is Strategy.BASIC, ids, is_elementwise, conservative)
        found = self._memo.get(key)
        if found is None:
            found = self._memo[key] = self._compute(rule_id, directions, strategy, ids, is_elementwise, conservative)
        return found

    def _compute(
        self,
        rule_id: int,
        directions: Directions,
        strategy: Strategy,
        ids: tuple[int, ...],
        is_elementwise: bool,
        conservative: bool,
    ) -> Outcome:
        common = self.table.common_mesh(ids)
        if common is None or common[1].is_maximal:
            return ()
        name, mesh = common
        rule = self.rules[rule_id]
        sizes = rule.factor_sizes
        mappings = rule.mappings
        values = self.table.values
        split = len(rule.operand_mappings)
        views = [self._view(rule_id, position, ids[position], mesh) for position in range(len(mappings))]
        projection = Projection(views[:split], views[split:])
        tensors = projection.tensors
        context = StepContext(sizes, directions, mesh, conservative, is_elementwise)
        updated = propagate_step(projection, context, strategy)
        changes = []
        for position, changed in enumerate(updated):
            if not changed:
                continue
            new = unproject(tensors[position], mappings[position], sizes, name, mesh)
            old = values[ids[position]]
            if new != old and not (old is None and new.empty_axes):
                changes.append((position, self.table.intern(new)))
        return tuple(changes)

    def _view(self, rule_id: int, position: int, sharding_id: int, mesh: Mesh) -> TensorFactorShardings:
        """Return the factor shardings of one tensor; they are computed once and copied."""
        key = (rule_id, position, sharding_id)
        found = self._views.get(key)
        if found is None:
            rule = self.rules[rule_id]
            sharding = self.table.values[sharding_id]
            found = self._views[key] = project(sharding, rule.mappings[position], rule.factor_sizes, mesh)
        return found.copy()


def project_step(rule: OpShardingRule, shardings: Sequence[TensorSharding | None], mesh: Mesh) -> Projection:
    """Return the factor shardings of all operands and results of a step."""
    mappings = (*rule.operand_mappings, *rule.result_mappings)
    tensors = [
        project(sharding, mapping, rule.factor_sizes, mesh)
        for sharding, mapping in zip(shardings, mappings, strict=True)
    ]
    split = len(rule.operand_mappings)
    return Projection(tensors[:split], tensors[split:])


def propagate_step(projection: Projection, context: StepContext, strategy: Strategy) -> Updates:
    """Propagate along the factors of a step, in place; return which tensors changed."""
    propagate = propagate_basic if strategy is Strategy.BASIC else propagate_aggressive
    return propagate(projection, context)
