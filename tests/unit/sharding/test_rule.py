"""Sharding rules as values, and their fit to an op."""

from __future__ import annotations

from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from shardy_py.sharding import FactorKind, parse_op_sharding_rule, rule_fit
from shardy_py.sharding.rule import OpShardingRule, factor_symbol

RULE = parse_op_sharding_rule(
    "<([i, jk, m], [i, m], [])->([i, j, l]) {i=2, j=4, k=2, l=3, m=8} reduction={k, m} need_replication={l}>"
)


def test_a_factor_has_one_kind() -> None:
    """Factors that are not listed are pass-through."""
    kinds = [RULE.kind(factor) for factor in range(RULE.num_factors)]
    assert kinds == [
        FactorKind.PASS_THROUGH,
        FactorKind.PASS_THROUGH,
        FactorKind.REDUCTION,
        FactorKind.NEED_REPLICATION,
        FactorKind.REDUCTION,
    ]


def test_batching_factors_are_in_every_tensor_that_has_dimensions() -> None:
    """Scalars do not count, reduced factors never are batching."""
    assert [factor for factor in range(RULE.num_factors) if RULE.is_batching(factor)] == [0]


def test_compound_dimensions_are_seen() -> None:
    """A rule knows whether some dimension is made of several factors."""
    assert RULE.has_compound_dims
    assert not parse_op_sharding_rule("<([i])->([i]) {i=2}>").has_compound_dims


def test_factor_symbols_go_on_after_z() -> None:
    """The eighteen letters from i to z are followed by z_1, z_2 and so on."""
    assert [factor_symbol(index) for index in (0, 17, 18, 19)] == ["i", "z", "z_1", "z_2"]


FACTORS = st.integers(-1, 3)
DIMS = st.lists(FACTORS, min_size=0, max_size=2).map(tuple)
MAPPINGS = st.lists(st.lists(DIMS, max_size=2).map(tuple), min_size=1, max_size=2).map(tuple)
SPECIAL = st.lists(FACTORS, max_size=2).map(tuple)
RULES = st.builds(
    OpShardingRule,
    st.lists(st.sampled_from([-2, 0, 1, 2, 3]), max_size=3).map(tuple),
    MAPPINGS,
    MAPPINGS,
    SPECIAL,
    SPECIAL,
    SPECIAL,
    SPECIAL,
)


def _shape(rule, mapping, change):
    """Return the sizes that the factors of a tensor make, one of them changed now and then."""
    shape = []
    for dim in mapping:
        size = 1
        for factor in dim:
            size *= rule.factor_sizes[factor] if 0 <= factor < rule.num_factors else 2
        shape.append(size)
    return tuple(size + change for size in shape)


@given(RULES, st.integers(0, 1))
def test_the_fast_way_and_the_slow_one_agree(rule, change):
    """A rule that the fast check accepts has no problem; what it does not accept is looked at in full."""
    operands = tuple(_shape(rule, mapping, 0) for mapping in rule.operand_mappings)
    results = tuple(_shape(rule, mapping, change) for mapping in rule.result_mappings)
    if rule_fit._is_plain(rule, operands, results):
        slow = rule_fit._all_problems(rule, operands, results, any_sizes=False)
        assert slow == ()
    changed = evolve(rule, initial_operands=(7,))
    assert not rule_fit._is_plain(changed, operands, results)
    assert rule_fit.rule_problems(changed, operands, results)
