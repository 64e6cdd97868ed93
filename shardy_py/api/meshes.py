"""Meshes as callers write them: a mesh, sizes by name, or a mesh of JAX or PyTorch."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain, count
from typing import Any

from shardy_py.errors import Diagnostic, OptionError
from shardy_py.ir.graph.op_names import MESH
from shardy_py.ir.graph.program import Op, Program
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.tensor import symbol
from shardy_py.sharding.verify import verify_mesh
from shardy_py.support.arguments import INT64_MAX, as_integer
from shardy_py.support.texts import require_text

DEFAULT_NAME = "mesh"


def as_mesh(mesh: Any) -> Mesh:
    """Return any form of mesh as a `Mesh`.

    The order of the devices of a mesh of JAX is left out, as JAX does it in its modules: devices are logical there.

    Args:
        mesh: A `Mesh`, a mapping of axis names to sizes, a ``jax.sharding.Mesh`` or ``AbstractMesh``, or a
            ``DeviceMesh`` of PyTorch with named dimensions.

    Raises:
        OptionError: it is none of these, or a name or size is not valid.
    """
    if isinstance(mesh, Mesh):
        return _verified(mesh)
    sizes = mesh if isinstance(mesh, Mapping) else _sizes_of_device_mesh(mesh) or getattr(mesh, "shape", None)
    if not isinstance(sizes, Mapping):
        raise OptionError(
            Diagnostic(
                "invalid-mesh",
                f"a {type(mesh).__name__} is not a mesh",
                hint="give a Mesh, a mapping of axis names to sizes, a mesh of JAX, or a DeviceMesh with names",
            )
        )
    axis_sizes: dict[str, int] = {}
    for name, size in sizes.items():
        require_text(name, "the name of an axis", code="invalid-mesh", error=OptionError)
        number = as_integer(size)
        if number is None or number > INT64_MAX:
            shown = f"a {type(size).__name__}" if number is None else "a number of more than 63 bits"
            raise OptionError(Diagnostic("invalid-mesh", f"the size of the axis {name!r} is {shown}"))
        axis_sizes[name] = number
    return _verified(Mesh.of(axis_sizes))


def _sizes_of_device_mesh(mesh: Any) -> Mapping[str, int] | None:
    """Return the sizes by name of a ``DeviceMesh`` of PyTorch; None for anything else."""
    names = getattr(mesh, "mesh_dim_names", None)
    return dict(zip(names, mesh.shape, strict=True)) if names else None


def _verified(mesh: Mesh) -> Mesh:
    problems = verify_mesh(mesh)
    if problems:
        raise OptionError(*problems)
    return mesh


def add_mesh(program: Program, mesh: Mesh, *, may_be_second: bool = True) -> str:
    """Give a program the mesh unless it has an equal one, and return its name.

    Meshes of one program are over the same devices, with other axes. A mesh without axes says on which device something
    runs, such as a call into Python.

    Args:
        program: The program.
        mesh: The mesh.
        may_be_second: Whether shardings over it are given; a further mesh that nothing uses is an error.

    Raises:
        OptionError: the program has a mesh over another number of devices, or another one and nothing uses this one.
    """
    for name, existing in program.meshes.items():
        if existing == mesh:
            return name
    for name, existing in program.meshes.items():
        if existing.axes and (not may_be_second or existing.total_size != mesh.total_size):
            raise OptionError(
                Diagnostic(
                    "mesh-conflict",
                    f"the module has the mesh {symbol(name)} = {existing}, not {mesh}",
                    op=MESH,
                    hint="leave the mesh out, or give the one of the module, or shardings over one of as many devices",
                )
            )
    names = {op.attributes.get("sym_name") for op in program.body.ops}
    name = next(name for name in chain([DEFAULT_NAME], (f"{DEFAULT_NAME}_{n}" for n in count())) if name not in names)
    program.body.insert_after(None, Op(program, MESH, attributes={"sym_name": name, "mesh": mesh}))
    return name
