"""Meshes as callers write them: a mesh, sizes by name, or a mesh of JAX."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain, count
from typing import Any

from shardy_py.errors import Diagnostic, OptionError
from shardy_py.ir.graph import Op, Program
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.tensor import symbol
from shardy_py.sharding.verify import verify_mesh

DEFAULT_NAME = "mesh"


def as_mesh(mesh: Any) -> Mesh:
    """Return any form of mesh as a `Mesh`.

    The order of the devices of a mesh of JAX is left out, as JAX does it in its modules: devices are logical there.

    Args:
        mesh: A `Mesh`, a mapping of axis names to sizes, a ``jax.sharding.Mesh`` or ``AbstractMesh``.

    Raises:
        OptionError: it is none of these, or a name or size is not valid.
    """
    if isinstance(mesh, Mesh):
        return _verified(mesh)
    sizes = mesh if isinstance(mesh, Mapping) else getattr(mesh, "shape", None)
    if not isinstance(sizes, Mapping):
        raise OptionError(
            Diagnostic(
                "invalid-mesh",
                f"a {type(mesh).__name__} is not a mesh",
                hint="give a Mesh, a mapping of axis names to sizes, or a mesh of JAX",
            )
        )
    for name, size in sizes.items():
        if not isinstance(name, str) or isinstance(size, bool) or not hasattr(size, "__index__"):
            raise OptionError(Diagnostic("invalid-mesh", f"{name!r}: {size!r} is not the name of an axis and its size"))
    return _verified(Mesh.of({name: int(size) for name, size in sizes.items()}))


def _verified(mesh: Mesh) -> Mesh:
    problems = verify_mesh(mesh)
    if problems:
        raise OptionError(*problems)
    return mesh


def add_mesh(program: Program, mesh: Mesh) -> str:
    """Give a program the mesh if it has none, and return the name of its mesh.

    Raises:
        OptionError: the program has other meshes only.
    """
    for name, existing in program.meshes.items():
        if existing == mesh:
            return name
    if program.meshes:
        name, existing = next(iter(program.meshes.items()))
        raise OptionError(
            Diagnostic(
                "mesh-conflict",
                f"the module has the mesh {symbol(name)} = {existing}, not {mesh}",
                op="sdy.mesh",
                hint="leave the mesh out, or give the one of the module",
            )
        )
    taken = {op.attributes.get("sym_name") for op in program.body.ops}
    name = next(name for name in chain([DEFAULT_NAME], (f"{DEFAULT_NAME}_{n}" for n in count())) if name not in taken)
    program.body.insert_after(None, Op(program, "sdy.mesh", attributes={"sym_name": name, "mesh": mesh}))
    return name
