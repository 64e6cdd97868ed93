"""Grammar of the parameters of collectives."""

from __future__ import annotations

from shardy_py.sharding.collectives import AllToAllParam, AllToAllParamList, AxisRefList, ListOfAxisRefLists
from shardy_py.sharding.grammar.lists import comma_list
from shardy_py.sharding.grammar.shardings import axis_ref
from shardy_py.sharding.lexer import Cursor


def axis_ref_list(cursor: Cursor) -> AxisRefList:
    """Parse a list of axes, which may be empty."""
    cursor.expect("{")
    return AxisRefList(comma_list(cursor, "}", axis_ref))


def list_of_axis_ref_lists(cursor: Cursor) -> ListOfAxisRefLists:
    """Parse a list of lists of axes."""
    cursor.expect("[")
    return ListOfAxisRefLists(comma_list(cursor, "]", lambda inner: axis_ref_list(inner).axes))


def _all_to_all_param(cursor: Cursor) -> AllToAllParam:
    axes = axis_ref_list(cursor).axes
    cursor.expect(":")
    src_dim = cursor.integer("the source dimension")
    cursor.expect("->")
    return AllToAllParam(axes, src_dim, cursor.integer("the target dimension"))


def all_to_all_param_list(cursor: Cursor) -> AllToAllParamList:
    """Parse the parameters of an all-to-all."""
    cursor.expect("[")
    return AllToAllParamList(comma_list(cursor, "]", _all_to_all_param))
