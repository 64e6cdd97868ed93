"""Moves of elements between parts of a dimension, and the positions of devices along axes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardy_py.sharding.axes import AxisRef, SubAxis
from shardy_py.sharding.mesh import Mesh, MeshAxis
from shardy_py.sharding.parse import parse_tensor_sharding
from shardy_py.sharding.shard_moves import Run, covered, own_runs, plan_rounds, sent_elements
from shardy_py.sharding.shard_positions import axes_of_parts, permutation_pairs, replica_groups, shard_positions


@given(
    st.integers(0, 20),
    st.integers(1, 6),
    st.integers(-3, 3),
    st.lists(st.integers(-8, 24), min_size=6, max_size=6),
    st.integers(1, 9),
)
def test_rounds_bring_each_window_its_elements(size: int, parts: int, shift: int, starts: list[int], wide: int) -> None:
    """After all rounds each part has every element of its window that exists, once, and no round sends twice."""
    part = -(-size // parts)
    held = own_runs(size, parts, part, shift)
    rounds = plan_rounds(held, starts[:parts], wide)
    collected: list[dict[int, int]] = [{} for _ in range(parts)]
    for item in rounds:
        assert len({move.source for move in item.moves}) == len({move.target for move in item.moves}) == len(item.moves)
        for move in item.moves:
            for step in range(move.size):
                assert move.place + step not in collected[move.target]
                collected[move.target][move.place + step] = move.source * part + move.start + step + shift
    for start, shard, limits in zip(starts, collected, covered(rounds, parts), strict=False):
        expected = {place: start + place for place in range(wide) if shift <= start + place < size + shift}
        assert shard == expected
        assert limits == ((min(expected), max(expected) + 1) if expected else (0, 0))


@given(
    st.lists(st.lists(st.tuples(st.integers(0, 9), st.integers(1, 6)), max_size=3), min_size=4, max_size=4),
    st.integers(-2, 6),
    st.integers(1, 8),
)
def test_no_window_gets_what_it_has(held: list[list[tuple[int, int]]], start: int, size: int) -> None:
    """Parts may hold the same elements: a move is left out where an earlier one, or the part itself, has all of it."""
    runs = [[Run(first, count) for first, count in part] for part in held]
    moves = [move for item in plan_rounds(runs, [start] * len(runs), size) for move in item.moves]
    for target in range(len(runs)):
        sources = (target, *(number for number in range(len(runs)) if number != target))
        expected: list[tuple[int, int, int]] = []
        for source in sources:
            for first, count in held[source]:
                low, high = max(first, start) - start, min(first + count, start + size) - start
                had = source != target and any(begin <= low and high <= end for _, begin, end in expected)
                if low < high and not had:
                    expected.append((source, low, high))
        got = [(move.source, move.place, move.place + move.size) for move in moves if move.target == target]
        assert sorted(got) == sorted(expected)


def test_what_a_part_has_does_not_move() -> None:
    """Windows inside of the parts need no communication."""
    assert sent_elements(plan_rounds(own_runs(16, 4, 4), [1, 5, 9, 13], 3)) == 0


def test_parts_far_away_are_not_looked_at() -> None:
    """Ten thousand parts shift their elements by one; all pairs of parts would be a hundred million."""
    rounds = plan_rounds(own_runs(10_000, 10_000, 1), [part - 1 for part in range(10_000)], 1)
    assert [len(item.moves) for item in rounds] == [9_999]


def test_neighbors_send_in_one_round_where_they_can() -> None:
    """Two parts that need an element of each other swap them at once."""
    assert sent_elements(plan_rounds(own_runs(4, 2, 2), [-1, 1], 4)) == 1


def test_the_parts_that_send_most_often_send_first() -> None:
    """Parts of 2 become parts of 7: rounds by distance alone would bring each part 13 elements."""
    held, starts = own_runs(14, 8, 2), [part // 4 * 7 for part in range(8)]
    assert sent_elements(plan_rounds(held, starts, 7)) == 11


X2Y4 = Mesh.of(x=2, y=4)


def test_groups_differ_along_their_axes_only() -> None:
    """The groups of an axis hold the devices that differ along it only, in its order."""
    assert replica_groups(X2Y4, [AxisRef("y")]) == ((0, 1, 2, 3), (4, 5, 6, 7))
    assert replica_groups(X2Y4, [AxisRef("x")]) == ((0, 4), (1, 5), (2, 6), (3, 7))


def test_the_first_axis_of_a_group_is_the_major_one() -> None:
    """The order of the axes is the order within a group."""
    assert replica_groups(X2Y4, [AxisRef("y"), AxisRef("x")]) == ((0, 4, 1, 5, 2, 6, 3, 7),)


def test_a_sub_axis_is_one_digit_of_its_axis() -> None:
    """The groups of a sub-axis differ in that part of the axis only."""
    assert replica_groups(X2Y4, [AxisRef("y", SubAxis(1, 2))]) == ((0, 2), (1, 3), (4, 6), (5, 7))
    assert replica_groups(X2Y4, [AxisRef("y", SubAxis(2, 2))]) == ((0, 1), (2, 3), (4, 5), (6, 7))


def test_groups_hold_device_ids_in_the_order_of_places() -> None:
    """With another order of devices a place is not the number of its device."""
    mesh = Mesh((MeshAxis("x", 2), MeshAxis("y", 4)), (7, 6, 5, 4, 3, 2, 1, 0))
    assert replica_groups(mesh, [AxisRef("y", SubAxis(1, 2))]) == ((7, 5), (6, 4), (3, 1), (2, 0))


def test_positions_are_by_device_number() -> None:
    """The part of a device is that of its place in the mesh."""
    mesh = Mesh((MeshAxis("x", 4),), (1, 2, 3, 0))
    assert shard_positions(mesh, [AxisRef("x")]) == [3, 0, 1, 2]
    assert shard_positions(X2Y4, []) == [0] * 8


def test_a_permutation_brings_each_part_to_the_device_that_wants_it() -> None:
    """Every device sends and receives once, and what it receives is its part under the new sharding."""
    before = parse_tensor_sharding('<@mesh, [{"x"}, {"y":(2)2}]>')
    after = parse_tensor_sharding('<@mesh, [{"y":(2)2}, {"x"}]>')
    pairs = permutation_pairs(before, X2Y4, after, X2Y4)
    assert pairs == [(0, 0), (1, 4), (2, 2), (3, 6), (4, 1), (5, 5), (6, 3), (7, 7)]


@pytest.mark.parametrize("devices", [(), (7, 2, 4, 1, 0, 6, 3, 5)])
def test_axes_are_found_by_the_parts_of_devices(devices: tuple[int, ...]) -> None:
    """Axes and sub-axes in any order are found again; parts that no axes make are not."""
    mesh = Mesh((MeshAxis("x", 2), MeshAxis("y", 4)), devices)
    low, high = AxisRef("y", SubAxis(2, 2)), AxisRef("y", SubAxis(1, 2))
    for axes in [(), (AxisRef("y"),), (AxisRef("y"), AxisRef("x")), (low, AxisRef("x")), (low, high), (high,)]:
        assert axes_of_parts(mesh, shard_positions(mesh, axes)) == axes
    assert axes_of_parts(X2Y4, [0, 1, 1, 0, 0, 1, 1, 0]) is None
    assert axes_of_parts(X2Y4, [0, 0, 1, 1, 2, 2, 2, 2]) is None
