"""Sharding rules as values: kinds of factors, batching, compound dimensions."""

from shardy_py.sharding import FactorKind, parse_op_sharding_rule
from shardy_py.sharding.rule import factor_symbol

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
