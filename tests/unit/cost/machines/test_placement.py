"""Meshes over machines."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardy_py.cost.machines.machine import Link, Machine
from shardy_py.cost.machines.placement import LinkPart, MeshPlacement
from shardy_py.errors import OptionError
from shardy_py.sharding.axes import AxisRef, SubAxis
from shardy_py.sharding.mesh import Mesh

X, Y = Link("x", 4, 1.0), Link("y", 4, 1.0)
GRID = Machine("grid", (X, Y), {"default": 1.0}, 1, 1.0)


def _parts(mesh, *axes, links=None):
    return MeshPlacement(GRID, links or {}).parts([AxisRef(*axis) for axis in axes], mesh)


def test_axes_of_the_sizes_of_links_run_over_them_in_order():
    """The last axis runs over the last link."""
    mesh = Mesh.of(data=4, model=4)
    assert _parts(mesh, ("data",)) == (LinkPart(X, 4),)
    assert _parts(mesh, ("model",)) == (LinkPart(Y, 4),)
    assert _parts(mesh, ("model",), ("data",)) == (LinkPart(X, 4), LinkPart(Y, 4))


def test_an_axis_may_take_a_link_and_a_half():
    """Devices are numbered through the links, the last ones fastest."""
    mesh = Mesh.of(data=2, model=8)
    assert _parts(mesh, ("model",)) == (LinkPart(X, 2), LinkPart(Y, 4))
    assert _parts(mesh, ("data",)) == (LinkPart(X, 2, 2),)


def test_sub_axes_take_the_part_that_is_theirs():
    """A sub-axis of the major part stands apart, one of the minor part does not."""
    mesh = Mesh.of(a=16)
    assert _parts(mesh, ("a", SubAxis(1, 2))) == (LinkPart(X, 2, 2),)
    assert _parts(mesh, ("a", SubAxis(2, 4))) == (LinkPart(X, 2), LinkPart(Y, 2, 2))
    assert _parts(mesh, ("a", SubAxis(8, 2))) == (LinkPart(Y, 2),)


def test_parts_that_touch_become_one():
    """Two halves of a link are the link, and overlapping parts are counted once."""
    mesh = Mesh.of(a=16)
    assert _parts(mesh, ("a", SubAxis(1, 2)), ("a", SubAxis(2, 2))) == (LinkPart(X, 4),)
    assert _parts(mesh, ("a", SubAxis(1, 8)), ("a", SubAxis(2, 8))) == (LinkPart(X, 4), LinkPart(Y, 4))


def test_axes_named_like_links_run_over_those():
    """Names count before order; an axis may be smaller than its link."""
    mesh = Mesh.of(y=4, x=2)
    assert _parts(mesh, ("y",)) == (LinkPart(Y, 4),)
    assert _parts(mesh, ("x",)) == (LinkPart(X, 2),)


def test_the_caller_may_say_which_links_an_axis_runs_over():
    """What the caller says counts before names and order; axes of size one need nothing."""
    mesh = Mesh.of(x=4, one=1, b=4)
    links = {"x": ["y"], "b": ["x"]}
    assert _parts(mesh, ("x",), links=links) == (LinkPart(Y, 4),)
    assert _parts(mesh, ("b",), links=links) == (LinkPart(X, 4),)
    assert _parts(mesh, ("one",), links=links) == ()
    assert _parts(Mesh.of(a=8), ("a",), links={"a": ["y", "x"]}) == (LinkPart(X, 4), LinkPart(Y, 2))


def test_a_mesh_may_use_a_part_of_a_machine():
    """The devices with the lowest numbers are used."""
    assert _parts(Mesh.of(a=2, b=2), ("a",)) == (LinkPart(Y, 2, 2),)


@pytest.mark.parametrize(
    ("mesh", "links", "message"),
    [
        (Mesh.of(a=32), {}, "has 32 devices, the machine 'grid' has 16"),
        (Mesh.of(a=3, b=5), {}, r"the axis .b.=5 of .* over the links of the machine 'grid', x=4, y=4"),
        (Mesh.of(x=3), {}, "does not divide the link 'x' of the machine 'grid'"),
        (Mesh.of(a=4, b=4), {"a": ["x"]}, 'no links are given for the axis "b"'),
        (Mesh.of(a=4), {"a": ["z"]}, "the machine 'grid' has no link 'z'"),
        (Mesh.of(a=8), {"a": ["x"]}, 'the axis "a"=8 does not fit the links given for it, x=4'),
        (Mesh.of(a=4, b=4), {"a": ["x"], "b": ["x"]}, 'the link \'x\' is given for the axes "a" and "b"'),
    ],
)
def test_a_mesh_that_does_not_fit_is_refused(mesh, links, message):
    """The error names the axis and the links, and says what to do."""
    with pytest.raises(OptionError, match=message) as caught:
        MeshPlacement(GRID, links).links_of(mesh)
    assert caught.value.diagnostics[0].code == "mesh-does-not-fit"
    assert caught.value.diagnostics[0].hint


def _coordinates(device, links):
    """Return the places of a device along the links."""
    places = []
    for link in reversed(links):
        places.append(device % link.size)
        device //= link.size
    return tuple(reversed(places))


@given(st.lists(st.sampled_from([1, 2, 4]), min_size=1, max_size=4), st.lists(st.sampled_from([2, 4, 8]), max_size=3))
def test_the_parts_of_an_axis_are_where_its_devices_stand(axis_sizes, link_sizes):
    """The devices that differ along one axis only have the places that its parts say."""
    mesh = Mesh.of({f"a{index}": size for index, size in enumerate(axis_sizes)})
    links = tuple(Link(f"l{index}", size, 1.0) for index, size in enumerate([256, *link_sizes]))
    placement = MeshPlacement(Machine("m", links, {"default": 1.0}, 1, 1.0))
    stride = mesh.total_size
    for axis in mesh.axes:
        stride //= axis.size
        devices = [_coordinates(index * stride, links) for index in range(axis.size)]
        expected = {
            tuple(sum(part.stride * step for part, step in steps if part.link is link) for link in links)
            for steps in _steps(placement.parts([AxisRef(axis.name)], mesh))
        }
        assert set(devices) == expected


def _steps(parts):
    if not parts:
        return [()]
    return [((parts[0], step), *rest) for step in range(parts[0].size) for rest in _steps(parts[1:])]
