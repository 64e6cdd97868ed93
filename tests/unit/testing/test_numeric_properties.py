"""The numeric check on random contractions, with errors planted at random."""

from __future__ import annotations

import pytest

pytest.importorskip("numpy")
import numpy as np
from attrs import evolve, frozen
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from shardy_py.sharding.rule import OpShardingRule
from shardy_py.testing import check_rule_numerically

FEW = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@frozen
class Contraction:
    """A product of one or two tensors, summed over some letters; each letter is a factor."""

    sizes: tuple[int, ...]
    operands: tuple[tuple[int, ...], ...]
    result: tuple[int, ...]

    @property
    def rule(self):
        """The right rule."""
        mappings = tuple(tuple((factor,) for factor in dims) for dims in self.operands)
        summed = tuple(factor for factor in range(len(self.sizes)) if factor not in self.result)
        return OpShardingRule(self.sizes, mappings, (tuple((factor,) for factor in self.result),), summed)

    @property
    def shapes(self):
        """The shapes of the operands."""
        return [tuple(self.sizes[factor] for factor in dims) for dims in self.operands]

    def __call__(self, *arrays):
        """Compute it."""
        pairs = [item for array, dims in zip(arrays, self.operands, strict=True) for item in (array, list(dims))]
        return np.einsum(*pairs, list(self.result))


@st.composite
def contractions(draw, *, least=1, alike=False):
    """Draw a contraction; every letter is in an operand, and where they are alike two are there and in the result."""
    count = draw(st.integers(least, 4))
    lengths = st.sampled_from((2, 3, 4))
    sizes = (draw(lengths),) * count if alike else tuple(draw(st.lists(lengths, min_size=count, max_size=count)))
    letters = list(range(count))
    first = draw(st.lists(st.sampled_from(letters), unique=True, min_size=least))
    second = [letter for letter in letters if letter not in first or draw(st.booleans())]
    operands = [tuple(draw(st.permutations(part))) for part in (first, second) if part]
    shared = first[:2] if alike else []
    result = tuple(draw(st.permutations([letter for letter in letters if letter in shared or draw(st.booleans())])))
    return Contraction(sizes, tuple(operands), result)


def symbols(checks):
    """The factors of checks."""
    return [check.factor for check in checks]


@FEW
@given(contractions())
def test_the_rule_of_a_contraction_holds(contraction):
    """Free letters pass through, summed ones are reduced: nothing is wrong, nothing missing."""
    report = check_rule_numerically(contraction.rule, contraction, contraction.shapes)
    assert report.ok, str(report)


@FEW
@given(contractions(), st.data())
def test_a_wrong_kind_is_found(contraction, data):
    """A summed letter that is said to pass through is wrong, and no other; that it is a reduction is said."""
    summed = contraction.rule.reduction_factors
    assume(summed)
    planted = data.draw(st.sampled_from(summed))
    wrong = evolve(contraction.rule, reduction_factors=tuple(factor for factor in summed if factor != planted))
    report = check_rule_numerically(wrong, contraction, contraction.shapes)
    assert symbols(report.wrong) == [planted]
    assert report.wrong[0].advice == "it is a reduction"


@FEW
@given(contractions(), st.data())
def test_a_mark_that_is_too_strict_is_found(contraction, data):
    """A letter that is said to need replication is missing, with its true kind and all of its dimensions."""
    rule = contraction.rule
    planted = data.draw(st.integers(0, rule.num_factors - 1))
    kind = rule.kind(planted)
    strict = evolve(
        rule,
        reduction_factors=tuple(factor for factor in rule.reduction_factors if factor != planted),
        need_replication_factors=(planted,),
    )
    report = check_rule_numerically(strict, contraction, contraction.shapes)
    (missing,) = report.missing
    assert not report.wrong
    assert (missing.kind, missing.size) == (kind, rule.factor_sizes[planted])
    assert missing.places.count("dim") == sum((planted,) in mapping for mapping in rule.mappings)


@FEW
@given(contractions(), st.data())
def test_a_factor_that_is_left_out_is_found(contraction, data):
    """A letter whose dimensions have factors of size 1 of their own is missing, with its true kind."""
    rule = contraction.rule
    planted = data.draw(st.integers(0, rule.num_factors - 1))
    sizes = list(rule.factor_sizes)

    def without(mappings):
        changed = []
        for mapping in mappings:
            dims = []
            for (factor,) in mapping:
                sizes.append(1)
                dims.append((len(sizes) - 1,) if factor == planted else (factor,))
            changed.append(tuple(dims))
        return tuple(changed)

    operands, results = without(rule.operand_mappings), without(rule.result_mappings)
    poor = _renumbered(OpShardingRule(tuple(sizes), operands, results, rule.reduction_factors))
    report = check_rule_numerically(poor, contraction, contraction.shapes)
    assert not report.wrong
    assert [(item.kind, item.size) for item in report.missing] == [(rule.kind(planted), rule.factor_sizes[planted])]


@FEW
@given(contractions(least=2, alike=True), st.data())
def test_exchanged_dimensions_are_found(contraction, data):
    """Two letters of one size exchanged in one tensor are both wrong."""
    rule = contraction.rule
    sites = [
        (number, left, right)
        for number, dims in enumerate(contraction.operands)
        for left in dims
        for right in dims
        if left < right and contraction.sizes[left] == contraction.sizes[right] and _matters(contraction, left, right)
    ]
    number, left, right = data.draw(st.sampled_from(sites))
    exchange = {left: right, right: left}
    mapping = tuple((exchange.get(factor, factor),) for (factor,) in rule.operand_mappings[number])
    mappings = (*rule.operand_mappings[:number], mapping, *rule.operand_mappings[number + 1 :])
    report = check_rule_numerically(evolve(rule, operand_mappings=mappings), contraction, contraction.shapes)
    assert set(symbols(report.wrong)) == {left, right}


def _matters(contraction, left, right):
    """Whether two letters occur in another tensor, too, so that exchanging them in one changes the rule."""
    tensors = (*contraction.operands, contraction.result)
    return all(sum(letter in dims for dims in tensors) > 1 for letter in (left, right))


def _renumbered(rule):
    """The rule without the factors that no dimension has."""
    used = sorted({factor for mapping in rule.mappings for dim in mapping for factor in dim})
    numbers = {factor: number for number, factor in enumerate(used)}

    def mapped(mappings):
        return tuple(tuple(tuple(numbers[factor] for factor in dim) for dim in mapping) for mapping in mappings)

    return OpShardingRule(
        tuple(rule.factor_sizes[factor] for factor in used),
        mapped(rule.operand_mappings),
        mapped(rule.result_mappings),
        tuple(numbers[factor] for factor in rule.reduction_factors if factor in numbers),
    )
