"""How many devices a program runs on, and what meshes of fewer become."""

from __future__ import annotations

import pytest

from shardy_py.errors import OptionError, UnsupportedError
from shardy_py.jax.devices import choose_devices, device_count, extend_mesh
from shardy_py.sharding.mesh import Mesh, MeshAxis


def test_the_largest_mesh_counts() -> None:
    """A program runs on the devices of its largest mesh; without any, on one."""
    assert device_count([Mesh.of(a=2), Mesh.of(b=2, c=4), Mesh(), Mesh((), (5,))]) == 8
    assert device_count([]) == 1


def test_meshes_that_do_not_fit() -> None:
    """Meshes that cannot be repeated over the same devices are refused, and those that name others."""
    with pytest.raises(UnsupportedError, match="cannot be repeated over the 8 devices"):
        device_count([Mesh.of(a=8), Mesh.of(a=3)])
    with pytest.raises(UnsupportedError, match="names devices beyond the 4"):
        device_count([Mesh.of(a=4), Mesh((), (4,))])


def test_smaller_meshes_are_repeated() -> None:
    """A mesh of fewer devices keeps its own at the first position of a new axis, with each device once."""
    mesh = Mesh((MeshAxis("x", 2), MeshAxis("rest", 2)), (2, 0, 3, 1))
    extended = extend_mesh(mesh, 8)
    assert [str(axis) for axis in extended.axes] == ['"x"=2', '"rest"=2', '"rest_"=2']
    assert extended.device_ids[::2] == (2, 0, 3, 1)
    assert sorted(extended.device_ids) == list(range(8))
    assert extend_mesh(mesh, 4) is mesh
    assert extend_mesh(Mesh((), (1,)), 4) == Mesh((), (1,))


def test_devices_are_different_devices_of_jax() -> None:
    """Too few devices, one twice, and what is no device are errors."""
    jax = pytest.importorskip("jax")
    device = jax.devices()[0]
    assert choose_devices(1, [[device]], {}) == [device]
    with pytest.raises(OptionError, match="has 2 devices, given are 1"):
        choose_devices(2, [device], {})
    with pytest.raises(OptionError, match="not different devices"):
        choose_devices(2, [device, device], {})
    with pytest.raises(OptionError, match="'cpu' is not a device"):
        choose_devices(1, ["cpu"], {})
