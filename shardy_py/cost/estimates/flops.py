"""Numbers of operations of ops: as the dialect says, else derived from the sharding rule.

The factors of a rule span the space of what is computed, and what one device computes is the part that the axes of each
factor leave it, rounded up. An op that sums products takes two operations per point of that space, a reduction one, an
elementwise op one per element of its results. All others move data.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from attrs import Factory, evolve

from shardy_py.api.summary import local_shape
from shardy_py.cost.estimates.op_kinds import OpKind
from shardy_py.cost.estimates.sizes import LocalSizes
from shardy_py.cost.machines.profile import Profile
from shardy_py.ir.graph.attributes import shared_key
from shardy_py.ir.graph.program import Op, Value
from shardy_py.ir.graph.types import TensorType, static_shape
from shardy_py.ir.interfaces.costs import CostOpInterface, OpShapes
from shardy_py.ir.interfaces.ops import Contraction, Elementwise, Reduction
from shardy_py.sharding.axes import axes_size
from shardy_py.sharding.projection import project
from shardy_py.sharding.rule import OpShardingRule, TensorMapping
from shardy_py.sharding.tensor import TensorSharding
from shardy_py.support.identity import identity
from shardy_py.values import frozen

HOW = (
    "as XLA counts: 2 for each product that is summed, 1 for each element that an elementwise op makes or a reduction"
    " takes away, none where data is moved; transcendental ones apart"
)


@frozen
class Work:
    """The work of one op.

    Args:
        unpartitioned: The operations of the op on a single device.
        local: The operations of one device.
        transcendentals: The transcendental operations of one device.
        reads: Operand number to the elements that one device reads, for those that are not read as a whole.
        writes: Result number to the elements that it writes, for those that are not written as a whole.
        targets: Result number to the number of the operand that it is written into, where these differ.
        tables: The numbers of the operands that are read at places that other data gives.
        temporary_bytes: The bytes in memory of one device while it runs besides its operands and results.
        is_known: Whether a sharding rule or the dialect gives the work.
    """

    unpartitioned: float = 0.0
    local: float = 0.0
    transcendentals: float = 0.0
    reads: Mapping[int, float] = Factory(dict)
    writes: Mapping[int, float] = Factory(dict)
    targets: Mapping[int, int] = Factory(dict)
    tables: tuple[int, ...] = ()
    temporary_bytes: float = 0.0
    is_known: bool = True


_MASK_OPS = 3.0

NOTHING = Work()
UNKNOWN = Work(is_known=False)


class WorkCounter:
    """Counts operations; ops with the same rule and shardings are counted once."""

    def __init__(self, sizes: LocalSizes, profile: Profile) -> None:
        """Prepare the counter.

        Args:
            sizes: Measures values.
            profile: The rules of the backend.
        """
        self._sizes = sizes
        self._profile = profile
        self._memo: dict[tuple[object, ...], Work] = {}
        self._known: dict[tuple[int, ...], tuple[Work, object]] = {}

    def count(self, op: Op, kind: OpKind, rule: OpShardingRule | None) -> Work:
        """Return the operations of an op that is not control flow."""
        key = self._look(op, kind, rule)
        entry = None if key is None else self._known.get(key)
        if entry is not None:
            return entry[0]
        work = self._count(op, kind, rule)
        if self._profile.follows_results and (masked := self._masked(op, kind, rule)):
            work = evolve(work, local=work.local + masked)
        if key is not None:
            # What the identity is of has to stay alive; the program keeps the others.
            self._known[key] = work, rule
        return work

    def _look(self, op: Op, kind: OpKind, rule: OpShardingRule | None) -> tuple[int, ...] | None:
        """Return all that the work of an op follows from, by identity; None where the dialect may look at more."""
        attributes = shared_key(op.attributes)
        if attributes is None or op.regions or kind.implements("get_flops"):
            return None
        sizes, table = self._sizes, self._sizes.table
        look = [identity(kind), identity(attributes), identity(rule)]
        for value in (*op.operands, *op.results):
            sharding = table.get(value.id)
            look.append(identity(value.type))
            look.append(identity(sizes.sharding(value) if sharding is None else sharding))
        return tuple(look)

    def _count(self, op: Op, kind: OpKind, rule: OpShardingRule | None) -> Work:
        cost = kind.cost
        if cost is not None:
            work = self._by_shapes(op, cost)
            if work is not None:
                return work
        dialect_flops = cost.get_flops(op) if cost is not None else None
        if dialect_flops is None and Elementwise in kind.traits:
            return self._elementwise(op.results)
        if rule is None:
            return UNKNOWN if dialect_flops is None else Work(dialect_flops, dialect_flops)
        values = (*op.operands, *op.results)
        shardings = tuple([self._sizes.sharding(value) for value in values])
        key = (rule, shardings, Contraction in kind.traits, len(op.results), dialect_flops)
        work = self._memo.get(key)
        if work is None:
            work = self._memo[key] = self._from_rule(op, kind, rule, shardings, dialect_flops)
        return work

    def _masked(self, op: Op, kind: OpKind, rule: OpShardingRule | None) -> float:
        """Return the operations that keep the padding of uneven shards out of a reduction or a product.

        As in XLA's spmd_partitioner_util.cc::PadWithValue: of each element the place in the whole tensor is computed,
        compared with the size and selected by.
        """
        if not (Contraction in kind.traits or Reduction in kind.traits) or rule is None or not rule.reduction_factors:
            return 0.0
        masked = 0.0
        for value, mapping in zip(op.operands, rule.operand_mappings, strict=True):
            shape = static_shape(value.type) or ()
            local = self._sizes.shape(value)
            dims = [dim for dim, factors in enumerate(mapping) if set(factors) & set(rule.reduction_factors)]
            if any(local[dim] < shape[dim] and shape[dim] % local[dim] for dim in dims):
                masked += _MASK_OPS * prod(local)
        return masked

    def _by_shapes(self, op: Op, cost: CostOpInterface) -> Work | None:
        """Return what the dialect counts for the whole tensors and for the shards."""
        attributes = shared_key(op.attributes)
        shapes = self._shapes(op, is_local=True)
        key = None
        if attributes is not None and not op.regions:
            # The program keeps these objects alive; equal ones are mostly the same, and identities are compared faster.
            types = [identity(value.type) for value in (*op.operands, *op.results)]
            key = (op.name, identity(attributes), *types, shapes.operands, shapes.results)
            if key in self._memo:
                return self._memo[key]
        local = cost.get_work(op, shapes)
        if local is None:
            return None
        if self._profile.ungroups_batches and local.ungrouped is not None:
            local = local.ungrouped
        unpartitioned = cost.get_work(op, self._shapes(op, is_local=False)) or local
        if self._profile.expands_solvers:
            local, unpartitioned = local.expanded or local, unpartitioned.expanded or unpartitioned
        work = Work(
            unpartitioned.flops,
            local.flops,
            local.transcendentals,
            local.reads,
            local.writes,
            tables=local.tables,
            temporary_bytes=local.temporary_bytes,
        )
        if key is not None:
            self._memo[key] = work
        return work

    def _shapes(self, op: Op, *, is_local: bool) -> OpShapes:
        def shape(value: Value) -> tuple[int, ...]:
            return self._sizes.shape(value) if is_local else static_shape(value.type) or ()

        return OpShapes(tuple(map(shape, op.operands)), tuple(map(shape, op.results)))

    def _elementwise(self, results: Sequence[Value]) -> Work:
        if len(results) == 1:
            return self._elements(results[0])
        parts = [self._elements(value) for value in results]
        return Work(sum(part.unpartitioned for part in parts), sum(part.local for part in parts))

    def _elements(self, value: Value) -> Work:
        """Return one operation for each element of a value."""
        sharding = self._sizes.sharding(value)
        key = (value.type, sharding)
        work = self._memo.get(key)
        if work is None:
            shape = static_shape(value.type) or ()
            mesh = self._sizes.mesh(sharding) if sharding is not None else None
            work = self._memo[key] = Work(prod(shape), prod(local_shape(shape, sharding, mesh)))
        return work

    def _from_rule(
        self,
        op: Op,
        kind: OpKind,
        rule: OpShardingRule,
        shardings: Sequence[TensorSharding | None],
        dialect_flops: float | None,
    ) -> Work:
        per_point = 1.0 if dialect_flops is not None else self._per_point(op, kind, rule)
        if not per_point:
            return NOTHING
        shards = self._shards(rule, shardings)
        points = prod(rule.factor_sizes)
        local = prod(-(-size // count) for size, count in zip(rule.factor_sizes, shards, strict=True))
        if dialect_flops is not None:
            return Work(dialect_flops, dialect_flops * local / points if points else dialect_flops)
        return Work(per_point * points, per_point * local)

    def _per_point(self, op: Op, kind: OpKind, rule: OpShardingRule) -> float:
        if Contraction in kind.traits:
            return 2.0
        if not rule.reduction_factors:
            return 0.0
        summed = sum(self._mentions(mapping, rule.reduction_factors) for mapping in rule.operand_mappings)
        # A reduction of several tensors at once sums one of them for each result; a product needs two for one.
        return 2.0 if summed > len(op.results) else float(len(op.results))

    def _mentions(self, mapping: TensorMapping, factors: Sequence[int]) -> bool:
        return any(factor in dim for dim in mapping for factor in factors)

    def _shards(self, rule: OpShardingRule, shardings: Sequence[TensorSharding | None]) -> list[int]:
        """Return into how many parts each factor is divided: as many as in the tensor that divides it most."""
        result = [1] * rule.num_factors
        for mapping, sharding in zip(rule.mappings, shardings, strict=True):
            mesh = self._sizes.mesh(sharding) if sharding is not None else None
            if sharding is None or mesh is None or not mapping or len(mapping) != sharding.rank:
                continue
            for factor, part in project(sharding, mapping, rule.factor_sizes, mesh).factors.items():
                result[factor] = max(result[factor], axes_size((*part.axes, *part.overflow_axes), mesh))
        return result


def element_type_of(op: Op) -> str | None:
    """Return the element type an op computes with: that of its first operand with dimensions, else of a result."""
    first = None
    for values in (op.operands, op.results):
        for value in values:
            type_ = value.type
            if isinstance(type_, TensorType):
                if type_.shape:
                    return type_.element_type
                first = first or type_
    return None if first is None else first.element_type
