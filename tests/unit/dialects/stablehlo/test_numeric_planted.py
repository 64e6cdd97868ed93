"""Errors planted into every rule: the numeric check finds each of them, whatever the op."""

from __future__ import annotations

import pytest

pytest.importorskip("numpy")
from attrs import evolve

from shardy_py.sharding.rule import FactorKind
from shardy_py.testing import Verdict, check_rule_numerically
from tests.unit.dialects.stablehlo.test_numeric import CASES, check, ids


def with_kind(rule, factor, kind):
    """The rule with another kind of a factor."""

    def factors(kind_of_list, others):
        return tuple(sorted({*others} - {factor} | ({factor} if kind_of_list is kind else set())))

    return evolve(
        rule,
        reduction_factors=factors(FactorKind.REDUCTION, rule.reduction_factors),
        need_replication_factors=factors(FactorKind.NEED_REPLICATION, rule.need_replication_factors),
        permutation_factors=factors(FactorKind.PERMUTATION, rule.permutation_factors),
    )


@pytest.mark.parametrize("case", CASES, ids=ids(CASES))
def test_planted_errors_are_found(case):
    """A reduction that is said to pass through is wrong; any factor that is said to need replication is missing."""
    report = check(case)
    holding = [item for item in report.factors if item.verdict is Verdict.HOLDS and item.size > 1]

    def again(item, kind):
        planted = with_kind(report.rule, item.factor, kind)
        operands, results = case.operands, report.results
        return check_rule_numerically(planted, case.function, operands, results, combine=case.combine, trials=1)

    for item in holding:
        if "operand" not in item.places:
            continue
        if item.kind is FactorKind.REDUCTION:
            wrong = again(item, FactorKind.PASS_THROUGH).wrong
            assert {other.symbol for other in wrong} == {item.symbol, *(other.symbol for other in report.wrong)}
        missing = [other for other in again(item, FactorKind.NEED_REPLICATION).missing if item.symbol in other.replaces]
        assert [(other.kind, other.size) for other in missing] == [(item.kind, item.size)]
