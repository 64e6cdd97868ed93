"""Sharding rules, in which the dimensions of operands and results share factors, and the reductions of an op."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import ClassVar

from attrs import evolve, field

from shardy_py.sharding.axes import SdyAttribute
from shardy_py.sharding.combiner import Combiner
from shardy_py.sharding.tensor import ReductionOp
from shardy_py.values import frozen

DimMapping = tuple[int, ...]
"""The factors of one dimension, major first."""

TensorMapping = tuple[DimMapping, ...]
"""One dimension mapping per dimension of a tensor."""

_FIRST, _LAST = ord("i"), ord("z")


class FactorKind(Enum):
    """Kinds of factors, by the communication that sharding them costs.

    ``PASS_THROUGH`` nothing; ``REDUCTION`` an all-reduce; ``NEED_REPLICATION`` the factor has to be
    gathered before the op; ``PERMUTATION`` a collective permute.
    """

    PASS_THROUGH = "pass_through"
    REDUCTION = "reduction"
    NEED_REPLICATION = "need_replication"
    PERMUTATION = "permutation"


def factor_symbol(index: int) -> str:
    """Return the symbol of a factor: i, j, ... z, z_1, z_2, ...

    >>> factor_symbol(0), factor_symbol(18)
    ('i', 'z_1')
    """
    if index <= _LAST - _FIRST:
        return chr(_FIRST + index)
    return f"z_{index - (_LAST - _FIRST)}"


@frozen(cache_hash=True)
class OpShardingRule(SdyAttribute):
    """The factors of an op, their sizes and kinds, and where each dimension uses them.

    Args:
        factor_sizes: The size of every factor; a factor is named by its index.
        operand_mappings: One tensor mapping per operand; empty for operands without a shape.
        result_mappings: One tensor mapping per result.
        reduction_factors: Sorted indices of the factors of that kind, as in the next two.
        blocked_propagation_factors: Factors along which shardings do not propagate.
        is_custom: Whether a user gave the rule; such a rule survives propagation.
        combiners: How the partial results along a reduction factor combine, for those that are not summed, sorted by
            factor. See `reductions`.
        initial_operands: Sorted numbers of the operands that a reduction starts from: along reduced factors they count
            once, not once per shard.
    """

    mnemonic: ClassVar[str] = "op_sharding_rule"

    factor_sizes: tuple[int, ...]
    operand_mappings: tuple[TensorMapping, ...]
    result_mappings: tuple[TensorMapping, ...]
    reduction_factors: tuple[int, ...] = ()
    need_replication_factors: tuple[int, ...] = ()
    permutation_factors: tuple[int, ...] = ()
    blocked_propagation_factors: tuple[int, ...] = ()
    is_custom: bool = False
    combiners: tuple[tuple[int, Combiner], ...] = ()
    initial_operands: tuple[int, ...] = ()

    @property
    def num_factors(self) -> int:
        """The number of factors."""
        return len(self.factor_sizes)

    def kind(self, factor: int) -> FactorKind:
        """Return the kind of a factor."""
        if factor in self.reduction_factors:
            return FactorKind.REDUCTION
        if factor in self.need_replication_factors:
            return FactorKind.NEED_REPLICATION
        if factor in self.permutation_factors:
            return FactorKind.PERMUTATION
        return FactorKind.PASS_THROUGH

    def combiner(self, factor: int) -> Combiner:
        """Return the combiner of the partial results along a reduction factor."""
        return next((combiner for reduced, combiner in self.combiners if reduced == factor), Combiner.ADD)

    @property
    def reductions(self) -> Mapping[int, Combiner]:
        """The combiner of the partial results along each reduction factor."""
        return {factor: self.combiner(factor) for factor in self.reduction_factors}

    @property
    def without_reductions(self) -> OpShardingRule:
        """The rule as the reference can write it, which has no words for combiners and initial operands."""
        if not self.combiners and not self.initial_operands:
            return self
        return evolve(self, combiners=(), initial_operands=())

    def is_pass_through(self, factor: int) -> bool:
        """Return whether sharding the factor needs no communication."""
        return self.kind(factor) is FactorKind.PASS_THROUGH

    @property
    def mappings(self) -> tuple[TensorMapping, ...]:
        """The mappings of the operands, then of the results."""
        return self.operand_mappings + self.result_mappings

    def is_batching(self, factor: int) -> bool:
        """Return whether the factor is pass-through and in every tensor that has a dimension."""
        return self.is_pass_through(factor) and all(
            any(factor in dim for dim in mapping) for mapping in self.mappings if mapping
        )

    @property
    def may_stand_on_op(self) -> bool:
        """True if it can be written on its op: Shardy has rules only on ops with operands and results."""
        return bool(self.operand_mappings and self.result_mappings)

    @property
    def has_compound_dims(self) -> bool:
        """True if some dimension is made of several factors."""
        return any(len(dim) > 1 for mapping in self.mappings for dim in mapping)

    def __str__(self) -> str:
        operands = ", ".join(_mapping(mapping) for mapping in self.operand_mappings)
        results = ", ".join(_mapping(mapping) for mapping in self.result_mappings)
        sizes = ", ".join(f"{factor_symbol(index)}={size}" for index, size in enumerate(self.factor_sizes))
        return (
            f"<({operands})->({results})"
            + (f" {{{sizes}}}" if sizes else "")
            + _reductions(self)
            + _factors("need_replication", self.need_replication_factors)
            + _factors("permutation", self.permutation_factors)
            + _factors("blocked_propagation", self.blocked_propagation_factors)
            + (f" initial={{{', '.join(map(str, self.initial_operands))}}}" if self.initial_operands else "")
            + (", custom>" if self.is_custom else ">")
        )


def _mapping(mapping: TensorMapping) -> str:
    return "[" + ", ".join("".join(factor_symbol(factor) for factor in dim) for dim in mapping) + "]"


def _reductions(rule: OpShardingRule) -> str:
    """Return the reductions, sums first; other combiners stand before the braces, as with unreduced axes."""
    if not rule.combiners:
        return _factors("reduction", rule.reduction_factors)
    return "".join(
        _factors(
            "reduction",
            [factor for factor, factor_combiner in rule.reductions.items() if factor_combiner is combiner],
            combiner,
        )
        for combiner in Combiner
    )


def _factors(keyword: str, factors: Iterable[int], combiner: Combiner = Combiner.ADD) -> str:
    body = ", ".join(factor_symbol(factor) for factor in factors)
    word = "" if combiner is Combiner.ADD else combiner.value
    return f" {keyword}={word}{{{body}}}" if body else ""


@frozen
class Reductions:
    """Combination of the partial results of an op.

    Args:
        combiners: For each reduction factor of the rule its combiner; None where partial results cannot be combined.
        initial_operands: The numbers of the operands that the reduction starts from, and that count once; those that
            change nothing, such as zeros of a sum, are not among them.
        shape_collectives: Whether explicit collectives follow from this. Those of ops that the reference knows are
            what it makes of them: sums, whatever the op does.
        counts_padding: The expression that elements beyond the end change although all operands hold the neutral value
            there, or "".
    """

    combiners: Mapping[int, Combiner | None] = field(factory=dict)
    initial_operands: tuple[int, ...] = ()
    shape_collectives: bool = True
    counts_padding: str = ""

    @classmethod
    def of_rule(cls, rule: OpShardingRule) -> Reductions:
        """Return the reductions that a rule describes itself."""
        return cls(rule.reductions, rule.initial_operands)

    @property
    def no_neutral(self) -> str:
        """The words that say that nothing may fill padding along reduced dimensions, and in which expression."""
        where = f"in {self.counts_padding}" if self.counts_padding else "there"
        return f"no value is neutral {where}"

    def neutral(self, factor: int) -> Combiner | None:
        """Return the combiner whose neutral value may fill padding along a factor, or None where none may."""
        return None if self.counts_padding else self.combiners.get(factor)


def with_collectives_only(
    rule: OpShardingRule, reductions: Reductions, element_types: Sequence[str]
) -> tuple[OpShardingRule, Mapping[int, ReductionOp]]:
    """Return a rule in which only factors are reduced that one collective per result can combine.

    Shardy's collectives add, and take the largest or smallest. Other factors need replication, and so do those of an
    operation that starts from a value that must count once, unless it may count several times.

    Args:
        rule: The rule.
        reductions: How its factors combine.
        element_types: The element types of the results.

    Returns:
        The rule, and the reduction of the collectives along each factor.
    """
    words: dict[int, ReductionOp] = {}
    for factor, combiner in reductions.combiners.items():
        word = _word(combiner, element_types)
        counts_once = combiner is not None and not combiner.is_idempotent and bool(reductions.initial_operands)
        if word is not None and not counts_once:
            words[factor] = word
    # Partial results of two reductions combine in one order only, which a pair of collectives cannot know.
    if len(set(words.values())) > 1:
        first = next(iter(words.values()))
        words = {factor: word for factor, word in words.items() if word == first}
    reduction_factors = tuple(factor for factor in rule.reduction_factors if factor in words)
    if reduction_factors == rule.reduction_factors:
        return rule, words
    replicated = {*rule.need_replication_factors, *rule.reduction_factors} - set(reduction_factors)
    combiners = tuple(item for item in rule.combiners if item[0] in words)
    changed = evolve(
        rule,
        reduction_factors=reduction_factors,
        need_replication_factors=tuple(sorted(replicated)),
        combiners=combiners,
    )
    return changed, words


def _word(combiner: Combiner | None, element_types: Sequence[str]) -> ReductionOp | None:
    if combiner is None:
        return None
    words = {combiner.collective_word(element_type) for element_type in element_types}
    return words.pop() if len(words) == 1 else None
