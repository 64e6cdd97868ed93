"""Basic and aggressive factor propagation, and the form of the latter along whole axes."""

from __future__ import annotations

import pytest

from shardy_py.propagation.steps.aggressive import propagate_aggressive
from shardy_py.propagation.steps.basic import propagate_basic
from shardy_py.propagation.steps.whole_axis import (
    open_tensor,
    propagate_whole_axes,
    whole_axis_rule,
    whole_axis_tensor,
)
from shardy_py.sharding.parse import parse_op_sharding_rule, parse_tensor_sharding
from tests.unit.propagation.projected import ADD, MATMUL, MESH, axes_of, context_of, project_texts


def test_axes_reach_every_tensor_with_the_factor() -> None:
    """Along each factor the tensors that have it end with the axes on which all agree."""
    rule, projection = project_texts(MATMUL, '{"a", ?}, {?}', '{?}, {"b", ?}', "{?}, {?}")
    assert propagate_basic(projection, context_of(rule)) == [False, False, True]
    assert [axes_of(projection, factor) for factor in range(3)] == [["a", None, "a"], [None, "b", "b"], ["", "", None]]


def test_a_conflict_between_tensors_stops_at_the_common_prefix() -> None:
    """Tensors that disagree behind a common prefix share that prefix only."""
    rule, projection = project_texts(ADD, '{"a", "b", ?}, {?}', '{"a", "c", ?}, {?}', "{?}, {?}")
    propagate_basic(projection, context_of(rule))
    assert axes_of(projection, 0) == ["a b", "a c", "a"]


def test_a_conflict_across_factors_stops_all_tensors() -> None:
    """An axis that one tensor uses along another factor propagates to no tensor."""
    rule, projection = project_texts(ADD, '{"a", ?}, {?}', '{?}, {"a", ?}', "{?}, {?}")
    assert propagate_basic(projection, context_of(rule)) == [False, False, False]


def test_a_closed_dimension_stops_all_tensors() -> None:
    """One tensor that cannot take an axis keeps it from the others."""
    rule, projection = project_texts(ADD, '{"a", ?}, {?}', "{}, {?}", "{?}, {?}")
    assert propagate_basic(projection, context_of(rule)) == [False, False, False]


@pytest.mark.parametrize(("conservative", "expected"), [(False, "c:(1)2"), (True, "")])
def test_conservative_propagation_takes_whole_axes_only(conservative: bool, expected: str) -> None:
    """A factor of size 2 takes a half of an axis of size 4, or nothing."""
    rule, projection = project_texts("<([i, j])->([ij]) {i=2, j=2}>", "{?}, {?}", '{"c", ?}')
    propagate_basic(projection, context_of(rule, conservative=conservative))
    assert axes_of(projection, 0)[0] == expected


def test_the_factor_of_the_largest_source_wins() -> None:
    """Of two factors that want one axis on the result, that of the larger operand takes it."""
    rule, projection = project_texts(MATMUL, '{"a", ?}, {?}', '{?}, {"a", ?}', "{?}, {?}")
    propagate_aggressive(projection, context_of(rule))
    assert axes_of(projection, 1)[2] == "a"
    assert axes_of(projection, 0)[2] == ""


def test_between_equal_sources_the_earlier_tensor_wins() -> None:
    """Equally large operands are ranked by their position."""
    rule, projection = project_texts(ADD, '{"a", ?}, {?}', '{?}, {"a", ?}', "{?}, {?}")
    propagate_aggressive(projection, context_of(rule))
    assert (axes_of(projection, 0), axes_of(projection, 1)) == (["a", "", "a"], ["", "a", ""])


def test_among_elementwise_ops_the_more_sharded_factor_wins() -> None:
    """More axes along a factor rank before the earlier tensor, where the op is elementwise."""
    shardings = ('{"a", ?}, {?}', '{?}, {"a", "b", ?}', "{?}, {?}")
    results = {}
    for is_elementwise in (False, True):
        rule, projection = project_texts(ADD, *shardings)
        propagate_aggressive(projection, context_of(rule, is_elementwise=is_elementwise))
        results[is_elementwise] = (axes_of(projection, 0)[2], axes_of(projection, 1)[2])
    assert results == {False: ("a", ""), True: ("", "a b")}


def test_an_operand_of_an_elementwise_op_takes_no_more_than_the_result() -> None:
    """Where the result must stay replicated, an axis does not go sideways from operand to operand."""
    shardings = ('{"a", ?}, {?}', "{?}, {?}", "{}, {?}")
    results = {}
    for is_elementwise in (False, True):
        rule, projection = project_texts(ADD, *shardings)
        propagate_aggressive(projection, context_of(rule, is_elementwise=is_elementwise))
        results[is_elementwise] = axes_of(projection, 0)
    assert results == {False: ["a", "a", ""], True: ["a", "", ""]}


def test_a_conflict_on_one_tensor_leaves_the_others_alone() -> None:
    """A closed tensor takes nothing; the others take the axis all the same."""
    rule, projection = project_texts(ADD, '{"a", ?}, {?}', "{}, {?}", "{?}, {?}")
    assert propagate_aggressive(projection, context_of(rule)) == [False, False, True]
    assert axes_of(projection, 0) == ["a", "", "a"]


@pytest.mark.parametrize("rule", ["<([i, j])->([ij]) {i=2, j=4}>", "<([i])->([i, i]) {i=4}>"])
def test_other_rules_have_no_fast_form(rule: str) -> None:
    """A dimension with several factors, or a factor twice in one tensor, needs the general form."""
    assert whole_axis_rule(parse_op_sharding_rule(rule)) is None


def test_sub_axes_have_no_fast_form() -> None:
    """A part of an axis anywhere in a sharding needs the general form."""
    assert whole_axis_tensor(parse_tensor_sharding('<@mesh, [{"c":(1)2, ?}]>')) is None
    assert whole_axis_tensor(parse_tensor_sharding('<@mesh, [{?}], replicated={"c":(1)2}>')) is None
    actual = whole_axis_tensor(parse_tensor_sharding('<@mesh, [{"a", "b"}, {?}], replicated={"c"}>'))
    assert actual is not None
    assert (actual.dims, actual.closed, actual.elsewhere) == ((("a", "b"), ()), (True, False), ("c",))


def test_changes_are_listed_results_first() -> None:
    """The new axes of all dimensions are given for the tensors that change, and for no other."""
    rule = whole_axis_rule(parse_op_sharding_rule(MATMUL))
    assert rule is not None
    sharded = whole_axis_tensor(parse_tensor_sharding('<@mesh, [{"a", ?}, {"b", ?}]>'))
    assert sharded is not None
    tensors = [sharded, open_tensor(2), open_tensor(2)]
    changes = propagate_whole_axes(rule, tensors, (3, 3, 3), MESH, is_elementwise=False)
    assert list(changes.items()) == [(2, [("a",), ()]), (1, [("b",), ()])]
    assert propagate_whole_axes(rule, tensors, (0, 0, 0), MESH, is_elementwise=False) == {}
