"""Reductions of an op, as its rule or its definition describes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import evolve, field

from shardy_py.sharding.combiner import Combiner
from shardy_py.sharding.rule import OpShardingRule
from shardy_py.sharding.tensor import ReductionOp
from shardy_py.values import frozen


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
    """Return a rule in which only those factors are reduced that one collective per result can combine.

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
    kept = tuple(factor for factor in rule.reduction_factors if factor in words)
    if kept == rule.reduction_factors:
        return rule, words
    replicated = {*rule.need_replication_factors, *rule.reduction_factors} - set(kept)
    own = tuple(item for item in rule.combiners if item[0] in words)
    changed = evolve(rule, reduction_factors=kept, need_replication_factors=tuple(sorted(replicated)), combiners=own)
    return changed, words


def _word(combiner: Combiner | None, element_types: Sequence[str]) -> ReductionOp | None:
    if combiner is None:
        return None
    words = {combiner.collective_word(element_type) for element_type in element_types}
    return words.pop() if len(words) == 1 else None
