"""Attributes of collectives and of propagation edges, as values and as text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import ClassVar, Literal

from attrs import field

from shardy_py.sharding.axes import AxisRef, SdyAttribute
from shardy_py.sharding.grammar import axis_ref
from shardy_py.sharding.lexer import Cursor, comma_list
from shardy_py.values import frozen

Axes = tuple[AxisRef, ...]


@frozen(cache_hash=True)
class AxisRefList(SdyAttribute):
    """A list of axes, for example those an all-reduce sums over.

    >>> str(AxisRefList((AxisRef("x"), AxisRef("y"))))
    '{"x", "y"}'
    """

    mnemonic: ClassVar[str] = "axis_ref_list"
    is_array: ClassVar[bool] = True

    axes: Axes = ()

    def __str__(self) -> str:
        return _braces(self.axes)


@frozen(cache_hash=True)
class ListOfAxisRefLists(SdyAttribute):
    """A list of axes per dimension, for example those an all-gather gathers.

    >>> str(ListOfAxisRefLists(((AxisRef("x"),), ())))
    '[{"x"}, {}]'
    """

    mnemonic: ClassVar[str] = "list_of_axis_ref_lists"
    is_array: ClassVar[bool] = True

    axes_per_dim: tuple[Axes, ...] = ()

    @property
    def is_empty(self) -> bool:
        """True if no dimension has any axis."""
        return not any(self.axes_per_dim)

    def axes(self) -> Iterator[AxisRef]:
        """Iterate over the axes of all dimensions."""
        for axes in self.axes_per_dim:
            yield from axes

    def __str__(self) -> str:
        return "[" + ", ".join(_braces(axes) for axes in self.axes_per_dim) + "]"


@frozen(cache_hash=True)
class AllToAllParam:
    """Axes that an all-to-all moves from the end of one dimension to the end of another.

    >>> str(AllToAllParam((AxisRef("x"),), 0, 2))
    '{"x"}: 0->2'
    """

    axes: Axes
    src_dim: int
    tgt_dim: int

    def __str__(self) -> str:
        return f"{_braces(self.axes)}: {self.src_dim}->{self.tgt_dim}"


def _braces(axes: Iterable[AxisRef]) -> str:
    return "{" + ", ".join(str(axis) for axis in axes) + "}"


@frozen(cache_hash=True)
class AllToAllParamList(SdyAttribute):
    """The moves of one all-to-all, sorted by source dimension; no dimension is mentioned twice."""

    mnemonic: ClassVar[str] = "all_to_all_param_list"
    is_array: ClassVar[bool] = True

    params: tuple[AllToAllParam, ...] = field(default=())

    def overlaps(self, other: AllToAllParamList) -> bool:
        """Return whether some dimension is mentioned twice in both lists together."""
        dims = [dim for param in self.params + other.params for dim in (param.src_dim, param.tgt_dim)]
        return len(set(dims)) != len(dims)

    def combined_with(self, other: AllToAllParamList) -> AllToAllParamList:
        """Return both lists as one, sorted by source dimension; they must not overlap."""
        return AllToAllParamList(tuple(sorted(self.params + other.params, key=lambda param: param.src_dim)))

    def __str__(self) -> str:
        return "[" + ", ".join(str(param) for param in self.params) + "]"


EdgeNodeType = Literal["operand", "result"]


@frozen(cache_hash=True)
class EdgeValueRef:
    """An operand or a result of an op.

    >>> str(EdgeValueRef("operand", 1))
    'operand-1'
    """

    type: EdgeNodeType
    index: int

    def __str__(self) -> str:
        return f"{self.type}-{self.index}"


@frozen(cache_hash=True)
class AxisToPropagationDetails:
    """An axis, with the operand or result that it came from and those that it went to."""

    axis: AxisRef
    source: EdgeValueRef
    targets: tuple[EdgeValueRef, ...]

    def __str__(self) -> str:
        targets = ", ".join(map(str, self.targets))
        return f"{{{self.axis} = {self.source} -> [{targets}]}}"


@frozen(cache_hash=True)
class PropagationOneStep:
    """Edges of one propagation step of the op; steps are numbered over the whole run."""

    step_index: int
    axis_entries: tuple[AxisToPropagationDetails, ...]

    def __str__(self) -> str:
        entries = ", ".join(map(str, self.axis_entries))
        return f"{{step-{self.step_index} = [{entries}]}}"


@frozen(cache_hash=True)
class PropagationEdges(SdyAttribute):
    """All steps that changed shardings of one op, in order.

    >>> moved = AxisToPropagationDetails(AxisRef("x"), EdgeValueRef("operand", 0), (EdgeValueRef("result", 0),))
    >>> str(PropagationEdges((PropagationOneStep(3, (moved,)),)))
    '<[{step-3 = [{"x" = operand-0 -> [result-0]}]}]>'
    """

    mnemonic: ClassVar[str] = "propagation_edges"

    steps: tuple[PropagationOneStep, ...] = ()

    def __str__(self) -> str:
        return "<[" + ", ".join(map(str, self.steps)) + "]>"


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
