"""Lists of axes: the edges that random lists seldom have."""

import pytest

from shardy_py.sharding import AxisRef, Mesh, parse_axis_ref
from shardy_py.sharding.axis_lists import (
    any_overlap,
    axis_set_difference,
    greatest_common_prefix,
    is_strict_prefix,
    list_order_key,
    prefix_status,
    sort_and_merge,
    split_axes,
    truncate_without_overlap,
)

MESH = Mesh.of(x=8, y=2, one=1)


def axes(*texts: str) -> tuple[AxisRef, ...]:
    """Parse axes written without quotes."""
    parts = [text.partition(":") for text in texts]
    return tuple(parse_axis_ref(f'"{name}":{part}' if part else f'"{name}"') for name, _, part in parts)


@pytest.mark.parametrize(
    ("first", "second", "status"),
    [
        ((), (), "equal"),
        ((), ("x",), "strict-prefix"),
        (("x",), (), "not-a-prefix"),
        (("x", "y"), ("x", "y"), "equal"),
        (("x",), ("x", "y"), "strict-prefix"),
        (("x:(1)2",), ("x", "y"), "strict-prefix"),
        (("x", "y"), ("x",), "not-a-prefix"),
        (("x:(1)2", "y"), ("x", "y"), "not-a-prefix"),
        (("x:(2)2",), ("x",), "not-a-prefix"),
    ],
)
def test_prefix_status(first: tuple[str, ...], second: tuple[str, ...], status: str) -> None:
    """Only the last axis of a prefix may be shorter than its counterpart."""
    assert prefix_status(axes(*first), axes(*second)).value == status
    assert is_strict_prefix(axes(*first), axes(*second)) is (status == "strict-prefix")


def test_the_common_prefix_stops_at_the_first_difference() -> None:
    """Equal axes after a difference do not count."""
    assert greatest_common_prefix(axes("x:(1)4", "y"), axes("x:(1)2", "y")) == axes("x:(1)2")
    assert greatest_common_prefix(axes("y", "x"), axes("x", "y")) == ()
    assert greatest_common_prefix((), axes("x")) == ()


def test_truncation_drops_everything_behind_the_first_overlap() -> None:
    """What follows an axis that had to be cut cannot stay."""
    assert truncate_without_overlap(axes("x", "y"), axes("x:(4)2")) == axes("x:(1)4")
    assert truncate_without_overlap(axes("y", "x"), axes("x")) == axes("y")
    assert truncate_without_overlap(axes("y"), axes("x")) == axes("y")


def test_a_difference_may_leave_two_parts() -> None:
    """Removing the middle of an axis leaves its two ends; axes that cannot coexist leave nothing."""
    assert axis_set_difference(axes("y", "x"), axes("x:(2)2"), MESH) == axes("y", "x:(1)2", "x:(4)2")
    assert axis_set_difference(axes("x:(1)4"), axes("x"), MESH) == ()
    six = Mesh.of(x=6)
    assert axis_set_difference(axes("x:(1)2"), axes("x:(1)3"), six) == ()
    assert not any_overlap(axes("x:(1)2"), axes("x:(2)2", "y"))


def test_shorter_lists_come_first() -> None:
    """Lists are ordered by their length, then axis by axis."""
    lists = [axes("y"), axes("x", "y"), axes("x"), axes("x:(2)2"), (), axes("x:(1)2")]
    ordered = sorted(lists, key=list_order_key)
    assert ordered == [(), axes("x:(1)2"), axes("x"), axes("x:(2)2"), axes("y"), axes("x", "y")]


def test_axes_of_size_one_stay_whole() -> None:
    """Splitting a mesh keeps an axis of one device, and merging gives the full axis."""
    assert split_axes(axes("x:(2)2"), MESH) == axes("x:(1)2", "x:(2)2", "x:(4)2", "y", "one")
    assert sort_and_merge(axes("one", "x:(4)2", "x:(1)4"), MESH) == axes("x", "one")
