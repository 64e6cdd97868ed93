"""Fast form of aggressive factor propagation; a property test compares it with the general one."""

from __future__ import annotations

import pytest

from shardy_py.propagation.steps.whole_axis import (
    open_tensor,
    propagate_whole_axes,
    whole_axis_rule,
    whole_axis_tensor,
)
from shardy_py.sharding.parse import parse_op_sharding_rule, parse_tensor_sharding
from tests.unit.propagation.projected import MATMUL, MESH


@pytest.mark.parametrize("rule", ["<([i, j])->([ij]) {i=2, j=4}>", "<([i])->([i, i]) {i=4}>"])
def test_other_rules_have_no_fast_form(rule: str) -> None:
    """A dimension with several factors, or a factor twice in one tensor, needs the general form."""
    assert whole_axis_rule(parse_op_sharding_rule(rule)) is None


def test_sub_axes_have_no_fast_form() -> None:
    """A part of an axis anywhere in a sharding needs the general form."""
    assert whole_axis_tensor(parse_tensor_sharding('<@mesh, [{"c":(1)2, ?}]>')) is None
    assert whole_axis_tensor(parse_tensor_sharding('<@mesh, [{?}], replicated={"c":(1)2}>')) is None
    found = whole_axis_tensor(parse_tensor_sharding('<@mesh, [{"a", "b"}, {?}], replicated={"c"}>'))
    assert found is not None
    assert (found.dims, found.closed, found.elsewhere) == ((("a", "b"), ()), (True, False), ("c",))


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
