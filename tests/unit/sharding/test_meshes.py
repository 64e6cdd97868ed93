"""Meshes: device orders, the special kinds, and the order of axes."""

import re

import pytest

from shardy_py.errors import VerificationError
from shardy_py.sharding import Mesh, MeshAxis, SubAxis, parse_axis_ref, parse_mesh, verify_mesh
from shardy_py.values import show_in_full


def test_the_default_order_of_devices_is_dropped() -> None:
    """A mesh with devices 0, 1, 2... equals the mesh without a list of devices."""
    axes = Mesh.of(x=2, y=2).axes
    assert Mesh(axes, (0, 1, 2, 3)) == Mesh(axes)
    assert Mesh(axes, (3, 2, 1, 0)).device_ids == (3, 2, 1, 0)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Mesh({"a": 2}),
        lambda: Mesh(None),
        lambda: Mesh((("a", 2),)),
        lambda: Mesh.of(a=None),
        lambda: Mesh(Mesh.of(a=2).axes, 1),
    ],
)
def test_what_is_no_mesh_is_an_error(make) -> None:
    """Axes that are none, and device ids that are no list, are refused where the mesh is made."""
    with pytest.raises(VerificationError, match="a mesh has axes and device ids"):
        make()


def test_a_mesh_may_be_made_of_lists() -> None:
    """It is the same as one of tuples, and has a hash."""
    assert {Mesh([MeshAxis("a", 2)], [1, 0])} == {Mesh((MeshAxis("a", 2),), (1, 0))}


def test_a_huge_mesh_costs_nothing() -> None:
    """Devices are never enumerated unless they are listed."""
    assert Mesh.of(x=2**40).total_size == 2**40


def test_special_meshes_are_recognised() -> None:
    """A mesh without axes is empty, or maximal with one device."""
    assert Mesh().is_empty
    assert not Mesh().is_maximal
    assert Mesh((), (3,)).is_maximal
    assert not Mesh((), (3,)).is_empty
    assert str(Mesh((), (3,))) == "<[], device_ids=[3]>"


def test_meshes_are_equal_up_to_devices_on_request() -> None:
    """Ignoring device ids compares the axes, and never a maximal mesh with another kind."""
    axes = Mesh.of(x=2).axes
    assert Mesh(axes).equals(Mesh(axes, (1, 0)), ignore_device_ids=True)
    assert not Mesh(axes).equals(Mesh(axes, (1, 0)))
    assert not Mesh().equals(Mesh((), (0,)), ignore_device_ids=True)
    assert Mesh((), (1,)).equals(Mesh((), (0,)), ignore_device_ids=True)


def test_axes_sort_in_mesh_order() -> None:
    """Axes sort by their position in the mesh; a full axis after its prefixes, before its other parts."""
    mesh = Mesh.of(y=8, x=4)
    texts = ['"x"', '"y":(2)4', '"y"', '"y":(1)2', '"y":(2)2']
    ordered = sorted((parse_axis_ref(text) for text in texts), key=mesh.sort_key)
    assert [str(axis) for axis in ordered] == ['"y":(1)2', '"y"', '"y":(2)2', '"y":(2)4', '"x"']
    assert ordered[0].sub_axis == SubAxis(1, 2)


@pytest.mark.parametrize(
    ("text", "code", "message"),
    [
        ('<["a"=2, "b"=0]>', "axis-size", 'axis 1: axis size must be at least 1, got: "b"=0'),
        ('<["a"=2, "b"=2, "a"=4]>', "duplicate-axis-name", 'axis 2: duplicate axis name: "a"'),
        ("<[], device_ids=[-1]>", "device-ids", "device id must be non-negative, got: -1"),
        ("<[], device_ids=[1, 0]>", "device-ids", "axes is empty and device_ids has more than one element"),
        ('<["a"=2], device_ids=[0, 2, 1]>', "device-ids", "total product of axis sizes must match .* 2 != 3"),
        ('<["a"=2], device_ids=[1, 1]>', "device-ids", r"sorted device ids must be iota.* \[1, 1\]"),
        ('<["a"=2], device_ids=[2, 1]>', "device-ids", r"sorted device ids must be iota.* \[1, 2\]"),
    ],
)
def test_each_broken_invariant_has_one_diagnostic(text: str, code: str, message: str) -> None:
    """A broken mesh gives one diagnostic, with its position and what to do."""
    (actual,) = verify_mesh(parse_mesh(text))
    assert actual.code == code
    assert actual.hint
    assert re.match(message, actual.message)


def test_all_problems_are_collected() -> None:
    """Independent problems of one mesh are all reported."""
    mesh = Mesh((MeshAxis("a", 0), MeshAxis("a", -1)))
    assert [item.code for item in verify_mesh(mesh)] == ["axis-size", "axis-size", "duplicate-axis-name"]


def test_a_mesh_of_many_devices_has_a_short_representation() -> None:
    """Results hold meshes, so that a list of a thousand devices would fill a notebook; the text stays whole."""
    axes, devices = Mesh.of(x=1024).axes, tuple(reversed(range(2, 1024)))
    first, second = (Mesh(axes, (*devices, *last)) for last in ((0, 1), (1, 0)))
    assert len(repr(first)) < 250
    assert repr(first).endswith("992, ... 1024 in all]>')")
    assert repr(first) == repr(second)
    assert show_in_full((first,)) != show_in_full((second,))
    assert parse_mesh(str(first)) == first
