"""The attributes of collectives and of propagation edges: their text, and lists of parameters."""

from __future__ import annotations

import pytest

from shardy_py.errors import ParseError
from shardy_py.sharding.axes import AxisRef, SubAxis
from shardy_py.sharding.op_attributes import (
    AllToAllParam,
    AllToAllParamList,
    AxisRefList,
    AxisToPropagationDetails,
    EdgeValueRef,
    ListOfAxisRefLists,
    PropagationEdges,
    PropagationOneStep,
)
from shardy_py.sharding.parse import format_attribute, parse_attribute

X, Y, HALF = AxisRef("x"), AxisRef("y"), AxisRef("z", SubAxis(1, 2))

TEXTS = [
    ("#sdy<axis_ref_list{}>", AxisRefList()),
    ('#sdy<axis_ref_list{"x", "z":(1)2}>', AxisRefList((X, HALF))),
    ("#sdy<list_of_axis_ref_lists[]>", ListOfAxisRefLists()),
    ('#sdy<list_of_axis_ref_lists[{"x"}, {}, {"y", "z":(1)2}]>', ListOfAxisRefLists(((X,), (), (Y, HALF)))),
    (
        '#sdy<all_to_all_param_list[{"x", "z":(1)2}: 0->2, {"y"}: 1->3]>',
        AllToAllParamList((AllToAllParam((X, HALF), 0, 2), AllToAllParam((Y,), 1, 3))),
    ),
]


@pytest.mark.parametrize(("text", "value"), TEXTS)
def test_text_and_value_of_collectives_are_inverse(text, value):
    """Every attribute is printed as MLIR prints it, and read back to the same value."""
    assert format_attribute(value) == text
    assert parse_attribute(text) == value


@pytest.mark.parametrize(
    "text",
    [
        '#sdy<axis_ref_list["x"]>',
        '#sdy<list_of_axis_ref_lists[{"x"} {}]>',
        '#sdy<all_to_all_param_list[{"x"}: 0 2]>',
        '#sdy<all_to_all_param_list[{"x"}: 0->]>',
        '#sdy.axis_ref_list{"x"}',
    ],
)
def test_other_text_is_refused(text):
    """What MLIR does not accept is an error with a column."""
    with pytest.raises(ParseError, match="column"):
        parse_attribute(text)


def test_lists_of_axes_are_empty_when_no_dimension_has_any():
    """Only axes count, not dimensions."""
    assert ListOfAxisRefLists(((), ())).is_empty
    assert not ListOfAxisRefLists(((), (X,))).is_empty
    assert list(ListOfAxisRefLists(((Y,), (X, HALF))).axes()) == [Y, X, HALF]


def test_combined_parameters_are_sorted_by_source():
    """An all-to-all lists its parameters by source dimension, whichever came first."""
    late, early = AllToAllParamList((AllToAllParam((X,), 2, 3),)), AllToAllParamList((AllToAllParam((Y,), 0, 1),))
    assert str(late.combined_with(early)) == '[{"y"}: 0->1, {"x"}: 2->3]'


@pytest.mark.parametrize(
    ("first", "second", "expected"), [((0, 1), (2, 3), False), ((0, 1), (1, 2), True), ((0, 1), (2, 0), True)]
)
def test_parameters_overlap_where_a_dimension_is_mentioned_twice(first, second, expected):
    """A dimension may be source or target once."""
    lists = [AllToAllParamList((AllToAllParam((X,), *dims),)) for dims in (first, second)]
    assert lists[0].overlaps(lists[1]) is expected


TEXT = '#sdy.propagation_edges<[{step-2 = [{"y":(1)2 = operand-1 -> [operand-0, result-0]}]}, {step-12 = []}]>'
VALUE = PropagationEdges(
    (
        PropagationOneStep(
            2,
            (
                AxisToPropagationDetails(
                    AxisRef("y", SubAxis(1, 2)),
                    EdgeValueRef("operand", 1),
                    (EdgeValueRef("operand", 0), EdgeValueRef("result", 0)),
                ),
            ),
        ),
        PropagationOneStep(12, ()),
    )
)


def test_text_and_value_of_propagation_edges_are_inverse() -> None:
    """Parsing gives the value, printing gives the text."""
    assert parse_attribute(TEXT) == VALUE
    assert format_attribute(VALUE) == TEXT


def test_white_space_does_not_matter() -> None:
    """Dashes may stand apart from their numbers, and arrows next to them."""
    assert parse_attribute(TEXT.replace("step-2", "step - 2").replace(" -> ", "->")) == VALUE


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [("step-2", "step2", "'step'"), ("operand-1", "value-1", "'operand'"), ("result-0", "result", "'-'")],
)
def test_a_wrong_part_is_named(old: str, new: str, expected: str) -> None:
    """The error says what was expected where."""
    with pytest.raises(ParseError, match=expected):
        parse_attribute(TEXT.replace(old, new))
