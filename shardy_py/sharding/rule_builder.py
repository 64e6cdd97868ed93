"""Building sharding rules factor by factor."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, lru_cache

from shardy_py.errors import Diagnostic, RuleError
from shardy_py.sharding.combiner import Combiner, parse_combiner
from shardy_py.sharding.rule import DimMapping, FactorKind, OpShardingRule, TensorMapping
from shardy_py.sharding.rule_inputs import (
    Dims,
    HasShardableValues,
    Shape,
    as_number,
    as_shapes,
    checked_size,
    no_dimension,
    numbered_dims,
    tensor_shape,
    values_of,
)
from shardy_py.support.arguments import shown

_GATHERED = (FactorKind.NEED_REPLICATION, FactorKind.PERMUTATION)


class OpShardingRuleBuilder:
    """Collects factors with their dimensions; `build` returns the rule.

    A dimension left without a factor gets one of its own of size 1, so that nothing propagates through it.

    >>> builder = OpShardingRuleBuilder([(8, 32), (32, 16)], [(8, 16)])
    >>> builder.add_factor([0, None], [0], 8).add_factor([None, 1], [1], 16) is builder
    True
    >>> str(builder.add_factor({0: 1, 1: 0}, {}, 32, kind=FactorKind.REDUCTION).build())
    '<([i, k], [k, j])->([i, j]) {i=8, j=16, k=32} reduction={k}>'
    """

    __slots__ = (
        "_blocked",
        "_combiners",
        "_initial",
        "_ones",
        "_operands",
        "_results",
        "_shapes",
        "_sizes",
        "_special",
    )

    def __init__(self, operand_shapes: Iterable[Shape], result_shapes: Iterable[Shape]) -> None:
        self._shapes = as_shapes(operand_shapes, "operand"), as_shapes(result_shapes, "result")
        self._operands: list[list[DimMapping]] = [[()] * len(shape) for shape in self._shapes[0]]
        self._results: list[list[DimMapping]] = [[()] * len(shape) for shape in self._shapes[1]]
        self._ones: set[tuple[int, int, int]] = set()
        self._sizes: list[int] = []
        self._blocked: list[int] = []
        self._special: list[tuple[int, FactorKind]] = []
        self._combiners: list[tuple[int, Combiner]] = []
        self._initial: tuple[int, ...] = ()

    @classmethod
    def for_op(cls, op: HasShardableValues) -> OpShardingRuleBuilder:
        """Start a rule for the operands and results of an op.

        Raises:
            RuleError: it is not an op.
        """
        values_of(op)
        return cls(map(tensor_shape, op.operands), map(tensor_shape, op.results))

    def add_factor(
        self,
        operand_dims: Dims,
        result_dims: Dims,
        size: int,
        *,
        kind: FactorKind = FactorKind.PASS_THROUGH,
        blocked: bool = False,
        combiner: Combiner | str = Combiner.ADD,
    ) -> OpShardingRuleBuilder:
        """Add a factor and append it to one dimension of each tensor that takes part.

        A factor of size 1 is not appended to a dimension that already has a factor: it would say nothing.

        Args:
            operand_dims: One dimension per operand, None for operands without the factor; or operand number to
                dimension, for those with the factor.
            result_dims: The same for the results.
            size: The size of the factor.
            kind: What sharding the factor costs.
            blocked: Whether shardings do not propagate along the factor.
            combiner: How the partial results along a reduction factor combine; with ``"not"`` they cannot be combined,
                so that the factor needs replication.

        Returns:
            The builder itself.

        Raises:
            RuleError: there are not as many dimensions as tensors, a tensor has no such dimension, dimensions are no
                sequence, or kind, combiner or size is none.
        """
        factors = (self._new_factor(size, kind, blocked, combiner),)
        for mappings, dims in ((self._operands, operand_dims), (self._results, result_dims)):
            side = "operand" if mappings is self._operands else "result"
            for index, dim in numbered_dims(dims, side, len(mappings)):
                if dim is None:
                    continue
                mapping = mappings[index]
                if not 0 <= as_number(dim) < len(mapping):
                    raise no_dimension(dim, side, index, mapping)
                if not mapping[dim]:
                    mapping[dim] = factors
                elif size != 1:
                    mapping[dim] += factors
        return self

    def tie(
        self,
        operand_dims: Mapping[int, int],
        result_dims: Mapping[int, int],
        size: int,
        *,
        kind: FactorKind = FactorKind.PASS_THROUGH,
        combiner: Combiner | str = Combiner.ADD,
    ) -> OpShardingRuleBuilder:
        """Add a factor to dimensions that go together wherever their sizes allow it.

        Dimensions of size 1 that are made of larger ones, or larger ones of them, as in a padding or a slice, share no
        factor: each is replicated by itself. A factor of size 1 is no part of a dimension that has others.

        Args:
            operand_dims: Operand number to dimension.
            result_dims: Result number to dimension.
            size: The size of the factor.
            kind: What sharding the factor costs.
            combiner: How the partial results along a reduction factor combine.

        Returns:
            The builder itself.
        """
        if size != 1:
            return self.add_factor(operand_dims, result_dims, size, kind=kind, combiner=combiner)
        places = [(0, *place) for place in operand_dims.items()] + [(1, *place) for place in result_dims.items()]
        sizes = [self._shapes[side][number][dim] for side, number, dim in places]
        if kind in _GATHERED and max(sizes, default=1) > 1:
            for (side, number, dim), own in zip(places, sizes, strict=True):
                ins, outs = ({number: dim} if side == which else {} for which in (0, 1))
                self.tie(ins, outs, own, kind=FactorKind.NEED_REPLICATION)
            return self
        free = [place for place, own in zip(places, sizes, strict=True) if own == 1 and place not in self._ones]
        self._ones.update(places)
        ins, outs = ({number: dim for side, number, dim in free if side == which} for which in (0, 1))
        return self.add_factor(ins, outs, 1, kind=kind, combiner=combiner)

    def add_factor_all(
        self, dim: int, size: int, *, kind: FactorKind = FactorKind.PASS_THROUGH, blocked: bool = False
    ) -> OpShardingRuleBuilder:
        """Add a factor to the same dimension of all operands and results but scalars."""
        factor = self._new_factor(size, kind, blocked)
        _append_everywhere(self._operands, dim, factor)
        _append_everywhere(self._results, dim, factor)
        return self

    def add_factor_all_operands(
        self,
        dim: int,
        size: int,
        *,
        kind: FactorKind = FactorKind.PASS_THROUGH,
        blocked: bool = False,
        combiner: Combiner | str = Combiner.ADD,
    ) -> OpShardingRuleBuilder:
        """Add a factor to the same dimension of all operands but scalars, and to no result."""
        _append_everywhere(self._operands, dim, self._new_factor(size, kind, blocked, combiner))
        return self

    def add_factor_all_results(
        self, dim: int, size: int, *, kind: FactorKind = FactorKind.PASS_THROUGH, blocked: bool = False
    ) -> OpShardingRuleBuilder:
        """Add a factor to the same dimension of all results but scalars, and to no operand."""
        _append_everywhere(self._results, dim, self._new_factor(size, kind, blocked))
        return self

    def add_pointwise(
        self,
        shape: Sequence[int],
        *,
        where: Callable[[int], bool] | None = None,
        kind: Callable[[int], FactorKind] | None = None,
        blocked: Callable[[FactorKind], bool] | None = None,
    ) -> OpShardingRuleBuilder:
        """Add one factor per dimension of ``shape``, each on that dimension of all operands and results but scalars.

        Args:
            shape: The sizes of the factors.
            where: The dimensions to take; default all.
            kind: The kind of a dimension's factor; default pass-through.
            blocked: Whether factors of a kind are blocked; default none.
        """
        for dim, size in enumerate(shape):
            if where is None or where(dim):
                factor_kind = FactorKind.PASS_THROUGH if kind is None else kind(dim)
                is_blocked = blocked is not None and blocked(factor_kind)
                self.add_factor_all(dim, size, kind=factor_kind, blocked=is_blocked)
        return self

    def add_pointwise_with_mismatch(
        self, in_shape: Sequence[int], out_shape: Sequence[int], *, kind: FactorKind, blocked: bool = False
    ) -> OpShardingRuleBuilder:
        """Add one factor per dimension, of the given kind where the two sizes differ.

        A factor has the size of the dimension in ``in_shape``.
        """
        for dim, (in_size, out_size) in enumerate(zip(in_shape, out_shape, strict=True)):
            if in_size == out_size:
                self.add_factor_all(dim, in_size)
            else:
                self.add_factor_all(dim, in_size, kind=kind, blocked=blocked)
        return self

    def start_from(self, *operands: int) -> OpShardingRuleBuilder:
        """Name the operands that reductions start from: along reduced factors they count once, not once per shard.

        Raises:
            RuleError: there is no operand of such a number.
        """
        for number in operands:
            if not 0 <= as_number(number) < len(self._operands):
                message = f"there is no operand {shown(number)} to start from: the op has {len(self._operands)}"
                raise RuleError(Diagnostic("initial-operand", message, hint="operands are numbered from 0"))
        self._initial = tuple(sorted({*self._initial, *map(int, operands)}))
        return self

    def build(self, *, custom: bool = False) -> OpShardingRule:
        """Return the rule; the builder stays as it is.

        Args:
            custom: Whether the rule counts as given by a user.
        """
        sizes = list(self._sizes)
        operands = tuple([_filled(mapping, sizes) for mapping in self._operands])
        results = tuple([_filled(mapping, sizes) for mapping in self._results])
        reduction: tuple[int, ...] = ()
        need_replication: tuple[int, ...] = ()
        permutation: tuple[int, ...] = ()
        if self._special:
            reduction = self._of_kind(FactorKind.REDUCTION)
            need_replication = self._of_kind(FactorKind.NEED_REPLICATION)
            permutation = self._of_kind(FactorKind.PERMUTATION)
        return OpShardingRule(
            factor_sizes=tuple(sizes),
            operand_mappings=operands,
            result_mappings=results,
            reduction_factors=reduction,
            need_replication_factors=need_replication,
            permutation_factors=permutation,
            blocked_propagation_factors=tuple(self._blocked),
            is_custom=custom,
            combiners=tuple(self._combiners),
            initial_operands=self._initial,
        )

    def _of_kind(self, kind: FactorKind) -> tuple[int, ...]:
        return tuple([factor for factor, factor_kind in self._special if factor_kind is kind])

    def _new_factor(self, size: int, kind: FactorKind, blocked: bool, combiner: Combiner | str = Combiner.ADD) -> int:
        factor = len(self._sizes)
        if type(size) is not int:
            size = checked_size(size)
        self._sizes.append(size)
        if kind is not FactorKind.PASS_THROUGH:
            self._special.append((factor, self._reduced(factor, kind, combiner)))
        elif combiner is not Combiner.ADD:
            message = f"the factor combines by {getattr(combiner, 'value', combiner)}, but is not a reduction"
            raise RuleError(Diagnostic("factor-kind", message, hint="give kind=FactorKind.REDUCTION"))
        if blocked:
            self._blocked.append(factor)
        return factor

    def _reduced(self, factor: int, kind: FactorKind, combiner: Combiner | str) -> FactorKind:
        """Return the kind of a factor, and note its combiner; a factor that does not combine needs replication."""
        if not isinstance(kind, FactorKind):
            hint = "; ".join(f"FactorKind.{known.name}" for known in FactorKind)
            message = f"{kind!r} is not a valid kind of factor"
            raise RuleError(Diagnostic("factor-kind", message, hint=f"the kinds are {hint}"))
        if combiner is Combiner.ADD:
            return kind
        parsed = parse_combiner(combiner)
        if kind is not FactorKind.REDUCTION:
            message = f"the factor combines by {getattr(combiner, 'value', combiner)}, but is not a reduction"
            raise RuleError(Diagnostic("factor-kind", message, hint="give kind=FactorKind.REDUCTION"))
        if parsed is None:
            return FactorKind.NEED_REPLICATION
        if parsed is not Combiner.ADD:
            self._combiners.append((factor, parsed))
        return kind


def identity_rule(shape: Sequence[int], *, num_operands: int = 1, num_results: int = 1) -> OpShardingRule:
    """Return the rule of an op whose tensors all have the same shape and sharding.

    Mirrors ``createIdentityShardingRule`` in upstream's ``op_sharding_rule_builder.cc``.

    >>> str(identity_rule((8, 4), num_operands=2))
    '<([i, j], [i, j])->([i, j]) {i=8, j=4}>'
    """
    return _identity_rule(tuple(shape), num_operands, num_results)


@lru_cache(maxsize=4096)
def _identity_rule(shape: Shape, num_operands: int, num_results: int) -> OpShardingRule:
    mapping = _one_to_one(len(shape))
    return OpShardingRule(shape, (mapping,) * num_operands, (mapping,) * num_results)


def pointwise_rule(op: HasShardableValues) -> OpShardingRule | None:
    """Return the rule that shards dimension ``d`` of all operands and results alike.

    Sizes are those of the first result; scalars have no part. Operands may be scalars. Mirrors ``buildPointwise`` in
    upstream's ``op_sharding_rule_builder.cc``; `shardy_py.sharding.rules.elementwise` checks the shapes, too.

    Args:
        op: The op; anything with operands and results whose types may have a shape.

    Returns:
        The rule, or None where the first result is not a tensor or another tensor has more dimensions than it.
    """
    if not op.results or not hasattr(op.results[0].type, "shape"):
        return None
    shape = tensor_shape(op.results[0])
    operands = tuple([_one_to_one(len(tensor_shape(value))) for value in op.operands])
    results = tuple([_one_to_one(len(tensor_shape(value))) for value in op.results])
    if max(map(len, operands + results)) > len(shape):
        return None
    return OpShardingRule(shape, operands, results)


@cache
def _one_to_one(rank: int) -> TensorMapping:
    """Return the mapping that gives each dimension the factor of its own number."""
    return tuple([(dim,) for dim in range(rank)])


def _append_everywhere(mappings: Iterable[list[DimMapping]], dim: int, factor: int) -> None:
    for number, mapping in enumerate(mappings):
        if mapping:
            if not 0 <= as_number(dim) < len(mapping):
                raise no_dimension(dim, "tensor", number, mapping)
            mapping[dim] += (factor,)


def _filled(mapping: Sequence[DimMapping], sizes: list[int]) -> TensorMapping:
    """Freeze a tensor mapping; dimensions without a factor get a fresh one of size 1, added to ``sizes``."""
    if () not in mapping:
        return tuple(mapping)
    dims: list[DimMapping] = []
    for factors in mapping:
        if not factors:
            dims.append((len(sizes),))
            sizes.append(1)
        else:
            dims.append(factors)
    return tuple(dims)
