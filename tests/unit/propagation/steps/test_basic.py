"""Basic factor propagation."""

from __future__ import annotations

import pytest

from shardy_py.propagation.steps.basic import propagate_basic
from tests.unit.propagation.projected import ADD, MATMUL, axes_of, context_of, project_texts


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
