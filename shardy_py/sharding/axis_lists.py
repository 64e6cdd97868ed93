"""Lists of axes: prefixes, overlaps, differences and orders.

A list is major to minor, as in a dimension sharding, or sorted, as among replicated and unreduced axes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum
from itertools import pairwise

from shardy_py.sharding.axes import AxisRef, add_axis_or_merge, make_axis, prefix_without_overlap
from shardy_py.sharding.mesh import Mesh

AxisList = tuple[AxisRef, ...]


class PrefixStatus(Enum):
    """Relation of one list of axes to the start of another."""

    EQUAL = "equal"
    STRICT_PREFIX = "strict-prefix"
    NOT_A_PREFIX = "not-a-prefix"


def prefix_status(first: AxisList, second: AxisList) -> PrefixStatus:
    """Return the relation of ``first`` to the start of ``second``; the last axis may be a prefix of its counterpart.

    >>> from shardy_py.sharding.axes import SubAxis
    >>> prefix_status((AxisRef("x", SubAxis(1, 2)),), (AxisRef("x"), AxisRef("y")))
    <PrefixStatus.STRICT_PREFIX: 'strict-prefix'>
    """
    if first == second:
        return PrefixStatus.EQUAL
    return PrefixStatus.STRICT_PREFIX if is_strict_prefix(first, second) else PrefixStatus.NOT_A_PREFIX


def is_strict_prefix(first: AxisList, second: AxisList) -> bool:
    """Return whether ``second`` continues ``first``, with more axes or a longer last one."""
    if len(first) > len(second) or first == second:
        return False
    if not first:
        return True
    last = len(first) - 1
    return first[:last] == second[:last] and first[last].prefix_of(second[last])


def is_prefix(first: AxisList, second: AxisList) -> bool:
    """Return whether ``second`` is ``first``, or continues it."""
    return first == second or is_strict_prefix(first, second)


def greatest_common_prefix(first: Iterable[AxisRef], second: Iterable[AxisRef]) -> AxisList:
    """Return the longest list with which both start; its last axis may be a prefix of theirs."""
    result: list[AxisRef] = []
    for axis, other in zip(first, second, strict=False):
        common = axis.greatest_common_prefix(other)
        if common is not None:
            result.append(common)
        if axis != other:
            break
    return tuple(result)


def truncate_without_overlap(axes: Sequence[AxisRef], others: Sequence[AxisRef]) -> AxisList:
    """Return the largest prefix of ``axes`` that shares nothing with ``others``."""
    for index, axis in enumerate(axes):
        prefix = prefix_without_overlap(axis, others)
        if prefix != axis:
            return (*axes[:index], *(() if prefix is None else (prefix,)))
    return tuple(axes)


def any_overlap(axes: Iterable[AxisRef], others: Sequence[AxisRef]) -> bool:
    """Return whether an axis of a list overlaps an axis of another list."""
    return any(axis.overlaps(other) for axis in axes for other in others)


def sort_and_merge(axes: Iterable[AxisRef], mesh: Mesh) -> AxisList:
    """Return non-overlapping axes in mesh order, consecutive sub-axes merged."""
    result: list[AxisRef] = []
    for axis in sorted(axes, key=mesh.sort_key):
        add_axis_or_merge(result, axis, mesh)
    return tuple(result)


def axis_set_difference(axes: Sequence[AxisRef], others: Sequence[AxisRef], mesh: Mesh) -> AxisList:
    """Return ``axes``, in their order, without every part that ``others`` have.

    Neither list may overlap with itself. Where two axes cannot coexist, the axis is dropped.
    """
    by_name: dict[str, list[AxisRef]] = {}
    for other in sorted(others, key=axis_order_key):
        by_name.setdefault(other.name, []).append(other)
    result: list[AxisRef] = []
    for axis in axes:
        result += _subtract(axis, by_name.get(axis.name, ()), mesh)
    return tuple(result)


def _subtract(axis: AxisRef, ordered_others: Iterable[AxisRef], mesh: Mesh) -> list[AxisRef]:
    """Return the parts of ``axis`` before, between and after the ordered others."""
    parts: list[AxisRef] = []
    rest: AxisRef | None = axis
    for other in ordered_others:
        if rest is None:
            break
        if not rest.overlaps(other):
            continue
        prefix = rest.prefix_without_overlap(other)
        if prefix is not None:
            parts.append(prefix)
        rest = rest.suffix_without_overlap(other, mesh)
    return parts if rest is None else [*parts, rest]


def axis_order_key(axis: AxisRef) -> tuple[str, int, float]:
    """Return the key of the order by name; a full axis comes after its prefixes and before its other parts."""
    if axis.sub_axis is None:
        return (axis.name, 1, float("inf"))
    return (axis.name, axis.sub_axis.pre_size, axis.sub_axis.size)


def list_order_key(axes: Sequence[AxisRef]) -> tuple[int, tuple[tuple[str, int, float], ...]]:
    """Return the key of the order of lists: shorter ones first, then axis by axis."""
    return (len(axes), tuple(axis_order_key(axis) for axis in axes))


def split_axes(axes: Iterable[AxisRef], mesh: Mesh) -> AxisList:
    """Return all axes of a mesh in its order, each split where one of the given sub-axes starts or ends.

    >>> from shardy_py.sharding.axes import SubAxis
    >>> [str(axis) for axis in split_axes([AxisRef("x", SubAxis(2, 2))], Mesh.of(x=8, y=2))]
    ['"x":(1)2', '"x":(2)2', '"x":(4)2', '"y"']
    """
    bounds = {axis.name: {1, axis.size} for axis in mesh.axes}
    for axis in axes:
        bounds[axis.name] |= {axis.pre_size, axis.next_pre_size(mesh)}
    result: list[AxisRef] = []
    for name, points in bounds.items():
        ordered = sorted(points)
        if len(ordered) == 1:
            result.append(AxisRef(name))
        result += [make_axis(name, pre, end // pre, mesh) for pre, end in pairwise(ordered)]
    return tuple(result)
