"""The places of devices along axes: parts, groups and pairs."""

from __future__ import annotations

import pytest

from shardy_py.sharding.axes import AxisRef, SubAxis
from shardy_py.sharding.mesh import Mesh, MeshAxis
from shardy_py.sharding.parse import parse_tensor_sharding
from shardy_py.sharding.shard_positions import axes_of_parts, permutation_pairs, replica_groups, shard_positions

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
