"""The algebra of axes and of lists of axes, on the examples that upstream's documentation gives, and its errors."""

import pytest

from shardy_py.errors import VerificationError
from shardy_py.sharding import AxisRef, Mesh, SubAxis, parse_axis_ref
from shardy_py.sharding.axes import make_axis, quote
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

MESH = Mesh.of(a=16, b=8)


def axis(text: str) -> AxisRef:
    """Parse an axis written without its quotes."""
    name, _, part = text.partition(":")
    return parse_axis_ref(f'"{name}":{part}' if part else f'"{name}"')


def maybe(text: str | None) -> AxisRef | None:
    """Parse an axis, or return None for none."""
    return None if text is None else axis(text)


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("a", "a:(2)2", True),
        ("a:(1)8", "a:(1)4", True),
        ("a:(2)8", "a:(4)2", True),
        ("a:(2)2", "a:(2)2", True),
        ("a:(1)4", "a:(2)4", False),
        ("a:(2)4", "a:(1)2", False),
        ("a:(2)2", "a", False),
        ("a", "b:(1)2", False),
    ],
)
def test_contains(first: str, second: str, expected: bool) -> None:
    """An axis contains each of its parts and itself, nothing else."""
    assert axis(first).contains(axis(second)) is expected


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("a", "a:(2)2", True),
        ("a:(1)4", "a:(2)4", True),
        ("a:(2)4", "a:(1)4", True),
        ("a:(1)4", "a:(4)2", False),
        ("a:(1)2", "a:(4)2", False),
        ("a:(1)4", "b:(2)4", False),
    ],
)
def test_overlaps(first: str, second: str, expected: bool) -> None:
    """Axes overlap if they have a part in common; adjacent parts do not."""
    assert axis(first).overlaps(axis(second)) is expected


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("a", "b", True),
        ("a", "a:(2)2", True),
        ("a:(1)2", "a:(4)2", True),
        ("a:(1)4", "a:(2)4", True),
        ("a:(1)2", "a:(1)3", False),
        ("a:(1)2", "a:(3)2", False),
        ("a:(1)3", "a:(2)3", False),
    ],
)
def test_can_coexist(first: str, second: str, expected: bool) -> None:
    """Parts coexist if one factorisation of the axis has them both."""
    assert axis(first).can_coexist(axis(second)) is expected
    assert axis(second).can_coexist(axis(first)) is expected


@pytest.mark.parametrize(
    ("first", "second", "overlap", "prefix", "suffix"),
    [
        ("a", "a:(2)2", "a:(2)2", "a:(1)2", "a:(4)4"),
        ("a:(2)2", "a:(2)2", "a:(2)2", None, None),
        ("a:(1)4", "a:(2)4", "a:(2)2", "a:(1)2", None),
        ("a:(2)4", "a:(1)4", "a:(2)2", None, "a:(4)2"),
        ("a:(1)4", "a:(1)2", "a:(1)2", None, "a:(2)2"),
        ("a:(2)8", "a:(4)2", "a:(4)2", "a:(2)2", "a:(8)2"),
        ("a:(1)4", "a:(4)2", None, "a:(1)4", "a:(1)4"),
        ("a:(1)4", "b:(2)4", None, "a:(1)4", "a:(1)4"),
        ("a:(1)2", "a:(1)3", None, None, None),
        ("a:(3)2", "a:(2)3", None, None, None),
        ("a:(1)2", "a:(3)2", None, None, None),
    ],
)
def test_parts(first: str, second: str, overlap: str | None, prefix: str | None, suffix: str | None) -> None:
    """Overlap and remainders are parts of the axis; where two cannot coexist there are none."""
    a, b = axis(first), axis(second)
    assert a.overlap(b) == maybe(overlap)
    assert a.prefix_without_overlap(b) == maybe(prefix)
    assert a.suffix_without_overlap(b, MESH) == maybe(suffix)


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("a", "a", "a"),
        ("a:(1)4", "a", "a:(1)4"),
        ("a", "a:(1)4", "a:(1)4"),
        ("a:(2)8", "a:(2)4", "a:(2)4"),
        ("a", "b", None),
        ("a:(1)2", "a:(2)4", None),
        ("a:(1)2", "a:(1)3", None),
    ],
)
def test_greatest_common_prefix(first: str, second: str, expected: str | None) -> None:
    """The greatest common prefix is the shorter of two axes that start together."""
    assert axis(first).greatest_common_prefix(axis(second)) == maybe(expected)


def test_merging_gives_the_full_axis_where_that_is_all() -> None:
    """Consecutive sub-axes merge, into the full axis if nothing of it is missing."""
    assert axis("a:(2)4").merge(axis("a:(8)2"), MESH) == axis("a:(2)8")
    assert axis("b:(1)2").merge(axis("b:(2)4"), MESH) == axis("b")
    assert make_axis("b", 1, 8, MESH) == AxisRef("b")


@pytest.mark.parametrize(("first", "second"), [("a:(1)2", "a:(4)2"), ("a:(2)4", "a:(1)2"), ("a", "a:(2)2")])
def test_only_a_following_sub_axis_merges(first: str, second: str) -> None:
    """Merging with anything else is an error that names both."""
    assert not axis(first).can_merge(axis(second))
    with pytest.raises(ValueError, match="does not follow"):
        axis(first).merge(axis(second), MESH)


def test_sizes_come_from_the_sub_axis_or_the_mesh() -> None:
    """A sub-axis knows its size, a full axis asks the mesh."""
    assert axis("a:(2)4").size(MESH) == 4
    assert axis("a").size(MESH) == 16
    assert SubAxis(2, 4).next_pre_size == 8
    assert axis("a").next_pre_size(MESH) == 16


def test_the_size_of_an_unknown_axis_is_an_error_that_lists_the_axes() -> None:
    """Asking for an axis that the mesh does not have names the axes it has."""
    with pytest.raises(VerificationError) as caught:
        AxisRef("c").size(MESH)
    diagnostic = caught.value.diagnostics[0]
    assert diagnostic.code == "unknown-axis"
    assert '"a"=16, "b"=8' in diagnostic.hint


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("x", '"x"'),
        ('a"b', r'"a\22b"'),
        ("a\\b", r'"a\\b"'),
        ("é\n", r'"\C3\A9\0A"'),
        ("\x7f", r'"\7F"'),
        ("\udcff", r'"\FF"'),
    ],
)
def test_quoting_is_that_of_mlir(name: str, expected: str) -> None:
    """A backslash is doubled; quotes, control characters and bytes beyond ASCII are two hex digits each."""
    assert quote(name) == expected
    assert parse_axis_ref(expected).name == name


LISTS_MESH = Mesh.of(x=8, y=2, one=1)


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
    assert axis_set_difference(axes("y", "x"), axes("x:(2)2"), LISTS_MESH) == axes("y", "x:(1)2", "x:(4)2")
    assert axis_set_difference(axes("x:(1)4"), axes("x"), LISTS_MESH) == ()
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
    assert split_axes(axes("x:(2)2"), LISTS_MESH) == axes("x:(1)2", "x:(2)2", "x:(4)2", "y", "one")
    assert sort_and_merge(axes("one", "x:(4)2", "x:(1)4"), LISTS_MESH) == axes("x", "one")
