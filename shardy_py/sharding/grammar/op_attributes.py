"""Grammar of the attributes of collectives, and of propagation edges."""

from __future__ import annotations

from shardy_py.sharding.grammar.shardings import axis_ref
from shardy_py.sharding.lexer import Cursor, comma_list
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


def _numbered(cursor: Cursor, what: str) -> int:
    """Parse a number behind a dash, which the lexer takes for a sign where nothing is between them."""
    if cursor.accept("-"):
        return cursor.integer(what)
    if not cursor.token.startswith("-"):
        cursor.fail("'-'")
    return -cursor.integer(what)


def _edge_value_ref(cursor: Cursor) -> EdgeValueRef:
    if cursor.accept("operand"):
        return EdgeValueRef("operand", _numbered(cursor, "the number of an operand"))
    cursor.expect("result", "operand")
    return EdgeValueRef("result", _numbered(cursor, "the number of a result"))


def _axis_to_propagation_details(cursor: Cursor) -> AxisToPropagationDetails:
    cursor.expect("{")
    axis = axis_ref(cursor)
    cursor.expect("=")
    source = _edge_value_ref(cursor)
    cursor.expect("->")
    cursor.expect("[")
    targets = comma_list(cursor, "]", _edge_value_ref)
    cursor.expect("}")
    return AxisToPropagationDetails(axis, source, targets)


def _propagation_one_step(cursor: Cursor) -> PropagationOneStep:
    cursor.expect("{")
    cursor.expect("step")
    index = _numbered(cursor, "the number of a step")
    cursor.expect("=")
    cursor.expect("[")
    entries = comma_list(cursor, "]", _axis_to_propagation_details)
    cursor.expect("}")
    return PropagationOneStep(index, entries)


def propagation_edges(cursor: Cursor) -> PropagationEdges:
    """Parse the edges of a propagation, step by step."""
    cursor.expect("<")
    cursor.expect("[")
    steps = comma_list(cursor, "]", _propagation_one_step)
    cursor.expect(">")
    return PropagationEdges(steps)
