"""The rules against arithmetic, by the kit's numeric check: an op on shards gives the shards of the op."""

from __future__ import annotations

from collections import Counter

import pytest

pytest.importorskip("numpy")

from shardy_py.ir import Builder, tensor
from shardy_py.plugins import RuleOptions
from shardy_py.sharding.rule import FactorKind
from shardy_py.testing import RuleReport, check_rule_numerically
from tests.unit.dialects.stablehlo.numeric import (
    contraction_cases,
    elementwise_cases,
    indexing_cases,
    linalg_cases,
    moving_cases,
    reduction_cases,
)
from tests.unit.dialects.stablehlo.numeric.case import Case
from tests.unit.dialects.stablehlo.ops import REGISTRY, make_op

FAMILIES = (elementwise_cases, moving_cases, contraction_cases, reduction_cases, indexing_cases, linalg_cases)
CASES = [case for family in FAMILIES for case in family.CASES]
EXTENDED = REGISTRY.with_options(RuleOptions(extended=True))

ACROSS_DEVICES = (
    "stablehlo.all_gather",
    "stablehlo.all_reduce",
    "stablehlo.all_to_all",
    "stablehlo.collective_broadcast",
    "stablehlo.collective_permute",
    "stablehlo.cross-replica-sum",
    "stablehlo.reduce_scatter",
)
"""What these compute is no function of what one device has."""
OTHERS = ("chlo._asin_acos_kernel", "mhlo.scan")
"""What these compute is defined by how others use them, or by their region."""


def check(case: Case) -> RuleReport:
    """Check the rule of an op."""
    if case.build is not None:
        subject, attributes = case.build(), None
    else:
        subject, attributes = case.op, case.all_attributes
    return check_rule_numerically(
        subject,
        case.function,
        case.operands,
        case.results,
        attributes,
        combine=case.combine,
        registry=EXTENDED,
    )


def ids(cases: list[Case]) -> list[str]:
    """The names of the cases, numbered."""
    seen: Counter[str] = Counter()
    names = []
    for case in cases:
        seen[case.name] += 1
        names.append(f"{case.name}-{seen[case.name]}")
    return names


def assert_as_known(case: Case) -> None:
    """Assert that the check finds what is known, and checks at least something."""
    report = check(case)
    assert {item.symbol for item in report.wrong} == set(case.wrong), str(report)
    assert {item.places for item in report.missing} == set(case.missing), str(report)
    assert report.is_search_complete
    assert not report.unchecked


@pytest.mark.parametrize("case", CASES, ids=ids(CASES))
def test_rules_are_right_and_complete(case):
    """No rule claims a wrong factor or lacks a possible one but where a case says why the reference does."""
    assert_as_known(case)


def test_special_functions():
    """The same for the functions that numpy does not have."""
    pytest.importorskip("scipy")
    for case in elementwise_cases.special_cases():
        assert_as_known(case)


def test_nearly_all_ops_with_a_rule_are_checked():
    """Every op of the dialects with a rule has a case, but those that compute nothing by themselves."""
    pytest.importorskip("scipy")
    checked = {case.op for case in (*CASES, *elementwise_cases.special_cases())}
    with_rule = {item.name for item in EXTENDED.definitions if item.rule is not None}
    assert with_rule - checked == {*ACROSS_DEVICES, *OTHERS}
    assert len(checked) > 130


def test_constant_indices_let_only_moved_updates_pass_through():
    """With constant indices the reference lets the update pass through, as it is known where its shards have to go.

    On shards that are not moved the op does not work.
    """
    constant = make_op("constant", [], [()]).result
    owner = make_op("dynamic_update_slice", [(4, 6), (4, 2), (), ()], [(4, 6)])
    for number in (2, 3):
        owner.set_operand(number, constant)
    case = next(case for case in moving_cases.CASES if case.name == "dynamic_update_slice")
    report = check_rule_numerically(owner, case.function, case.operands, registry=EXTENDED)
    assert [item.symbol for item in report.wrong] == ["k"]
    assert report.missing == ()


def test_joined_slices_are_permuted():
    """A concatenation of slices moves what its shards hold: no shard of it is made of one shard of each slice."""
    b = Builder()
    with b.function("main", [tensor(4, 8)]) as (x,):
        parts = [b.op("stablehlo.slice", [x], [tensor(4, size)]) for size in (2, 6)]
        joined = b.op("stablehlo.concatenate", parts, [tensor(4, 8)], dimension=1)
        b.return_(joined)
    report = check_rule_numerically(joined.owner, moving_cases.concatenate, registry=EXTENDED)
    assert [item.kind for item in report.factors] == [FactorKind.PASS_THROUGH, FactorKind.PERMUTATION]
    assert report.ok
