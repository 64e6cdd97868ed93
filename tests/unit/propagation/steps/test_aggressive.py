"""Aggressive factor propagation."""

from __future__ import annotations

from shardy_py.propagation.steps.aggressive import propagate_aggressive
from tests.unit.propagation.projected import ADD, MATMUL, axes_of, context_of, project_texts


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
