"""Meshes in every form a caller may have."""

from __future__ import annotations

from typing import Any

import pytest

import shardy_py as sdy
from shardy_py.api.meshes import add_mesh, as_mesh
from shardy_py.errors import OptionError
from shardy_py.ir.graph.builder import Builder
from shardy_py.sharding.mesh import Mesh

EXPECTED = Mesh.of(data=4, model=2)


def test_every_form_gives_the_same_mesh() -> None:
    """A mesh and a mapping of sizes mean the same."""
    assert as_mesh(EXPECTED) == as_mesh({"data": 4, "model": 2}) == EXPECTED


def test_meshes_of_jax() -> None:
    """An abstract mesh of JAX gives its axes in its order."""
    jax = pytest.importorskip("jax")
    assert as_mesh(jax.sharding.AbstractMesh((4, 2), ("data", "model"))) == EXPECTED


def test_devices_of_jax_are_logical() -> None:
    """A mesh of JAX over devices gives its axes without device ids, as JAX writes it into modules."""
    jax = pytest.importorskip("jax")
    mesh = jax.make_mesh((1,), ("data",), devices=jax.devices("cpu")[:1])
    assert as_mesh(mesh) == Mesh.of(data=1)


@pytest.mark.parametrize("mesh", [3, "data=4", None, {"data": "4"}, {"data": True}, {"data": -2}, {1: 2}])
def test_anything_else_is_refused(mesh: object) -> None:
    """What is no mesh, or has an axis without a proper name and size, is an error."""
    with pytest.raises(OptionError):
        as_mesh(mesh)


def test_add_mesh_to_a_module_without_one() -> None:
    """A module without a mesh gets it at its start, under a name no other symbol has."""
    builder = Builder()
    with builder.function("mesh"):
        builder.return_()
    assert add_mesh(builder.program, EXPECTED) == "mesh_0"
    assert builder.program.meshes == {"mesh_0": EXPECTED}
    assert next(builder.program.body.ops).name == "sdy.mesh"


def test_add_mesh_finds_an_equal_one() -> None:
    """A module that has the mesh keeps its name for it."""
    builder = Builder(meshes={"a": Mesh.of(x=2), "b": EXPECTED})
    assert add_mesh(builder.program, EXPECTED) == "b"
    assert list(builder.program.meshes) == ["a", "b"]


def test_add_mesh_over_the_same_devices() -> None:
    """A module with a mesh of as many devices gets one with other axes beside it; one without axes does not count."""
    builder = Builder(meshes={"mesh": Mesh.of(x=8), "host": Mesh()})
    assert add_mesh(builder.program, EXPECTED) == "mesh_0"
    assert builder.program.meshes == {"mesh_0": EXPECTED, "mesh": Mesh.of(x=8), "host": Mesh()}


def test_a_mesh_that_nothing_uses_is_refused() -> None:
    """Without shardings over it, a mesh that is not the module's would be left out in silence."""
    text = 'sdy.mesh @mesh = <["x"=8]>\nfunc.func @main(%a: tensor<8xf32>) { return }'
    unused: tuple[Any, ...] = (None, [None], {0: None})
    for in_shardings in unused:
        with pytest.raises(OptionError, match=r'"x"=8.*"data"=4'):
            sdy.propagate(text, EXPECTED, in_shardings=in_shardings)
    result = sdy.propagate(text, EXPECTED, in_shardings=[("data",)])
    assert list(result.program.meshes.values()) == [EXPECTED, Mesh.of(x=8)]


def test_add_mesh_refuses_one_over_other_devices() -> None:
    """A mesh of another number of devices is an error that names both."""
    builder = Builder(meshes={"a": EXPECTED, "b": Mesh.of(x=8)})
    with pytest.raises(OptionError, match=r'"data"=4.*"x"=2'):
        add_mesh(builder.program, Mesh.of(x=2))
    assert list(builder.program.meshes) == ["a", "b"]
