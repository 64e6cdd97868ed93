"""The attributes of collectives: their text, and lists of all-to-all parameters."""

import pytest

from shardy_py.errors import ParseError
from shardy_py.sharding.axes import AxisRef, SubAxis
from shardy_py.sharding.collectives import AllToAllParam, AllToAllParamList, AxisRefList, ListOfAxisRefLists
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
def test_text_and_value_are_inverse(text, value):
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
