"""One name for every mesh: inlined meshes become symbols, and of equal symbols one is kept.

Mirrors lift_inlined_meshes.cc::LiftInlinedMeshesPass.
"""

from __future__ import annotations

from typing import Any, ClassVar

from attrs import evolve

from shardy_py.ir.graph.attributes import DenseElements
from shardy_py.ir.graph.op_names import MESH
from shardy_py.ir.graph.program import Op, Program
from shardy_py.ir.graph.symbols import SYMBOL_NAME, SymbolTable
from shardy_py.ir.graph.walk import ops_among
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.tensor import TensorSharding
from shardy_py.transforms.sharding_walker import transform_shardings
from shardy_py.values import NoFields

EMPTY_MESH_NAME = "empty_mesh"
PLAIN_MESH = "stablehlo.mesh"
"""The attribute that repeats a mesh in builtin attributes, for those who do not know the sdy dialect."""


class LiftInlinedMeshesPass(NoFields):
    """Replace inlined meshes in shardings by names, of new symbols where need be, and merge symbols of equal meshes.

    New symbols are called ``mesh``, ``maximal_mesh_N`` or ``empty_mesh``, with a number where the name is taken.
    """

    name: ClassVar[str] = "sdy-lift-inlined-meshes"

    def run(self, program: Program, context: PassContext) -> None:
        """Rewrite all references to meshes."""
        lifter = _Lifter(program)
        transform_shardings(program, context.semantics, lifter.lift, concerns=lifter.concerns)
        for op in ops_among(program, context.semantics.names_with_mesh_reference(program.op_names)):
            reference = context.semantics.get_mesh_reference(op)
            mesh = reference.get_mesh(op) if reference is not None else None
            if reference is not None and mesh is not None:
                reference.set_mesh(op, lifter.name_of_foreign(mesh))
        for op in program.body.ops:
            if op.name == MESH and PLAIN_MESH not in op.attributes:
                op.attributes[PLAIN_MESH] = plain_mesh(op.attributes["mesh"])


class _Lifter:
    """The names of all meshes, with new symbols for inlined ones."""

    __slots__ = ("_foreign_names", "_last", "_lifted", "_names", "_program", "_renamed", "_symbols")

    def __init__(self, program: Program) -> None:
        self._program = program
        self._symbols = SymbolTable(program)
        self._names: dict[Mesh, str] = {}
        self._foreign_names: dict[Mesh, str] = {}
        self._renamed: dict[str, str] = {}
        self._last: Op | None = None
        self._lifted: dict[TensorSharding, TensorSharding] = {}
        for op in program.body.ops:
            if op.name == MESH:
                self._enter(op)

    def _enter(self, op: Op) -> None:
        name = op.attributes[SYMBOL_NAME]
        first_name = self._names.setdefault(op.attributes["mesh"], name)
        if first_name == name:
            self._last = op
            return
        self._renamed[name] = first_name
        self._symbols.erase(op)

    def concerns(self, sharding: TensorSharding) -> bool:
        """Return whether a sharding is over a mesh that is inlined or goes by another name."""
        return not isinstance(sharding.mesh, str) or sharding.mesh in self._renamed

    def lift(self, sharding: TensorSharding) -> TensorSharding:
        """Return a sharding over the same mesh by its name."""
        lifted = self._lifted.get(sharding)
        if lifted is None:
            name = self._name_of(sharding.mesh, self._names)
            lifted = self._lifted[sharding] = sharding if name == sharding.mesh else evolve(sharding, mesh=name)
        return lifted

    def name_of_foreign(self, mesh: str | Mesh) -> str:
        """Return the name for a reference of another dialect; its inlined meshes count as unlike ours, as upstream."""
        return self._name_of(mesh, self._foreign_names)

    def _name_of(self, mesh: str | Mesh, names: dict[Mesh, str]) -> str:
        if isinstance(mesh, str):
            return self._renamed.get(mesh, mesh)
        name = names.get(mesh)
        if name is None:
            name = names[mesh] = self._create(mesh)
        return name

    def _create(self, mesh: Mesh) -> str:
        """Add a symbol after the last mesh."""
        op = Op(self._program, MESH, attributes={SYMBOL_NAME: _wanted_name(mesh), "mesh": mesh})
        self._last = self._program.body.insert_after(self._last, op)
        return self._symbols.insert(op)


def _wanted_name(mesh: Mesh) -> str:
    if mesh.is_maximal:
        return f"maximal_mesh_{mesh.device_ids[0]}"
    return EMPTY_MESH_NAME if mesh.is_empty else "mesh"


def plain_mesh(mesh: Mesh) -> dict[str, Any]:
    """Return a mesh in builtin attributes."""
    result: dict[str, Any] = {"axes": tuple({"name": axis.name, "size": axis.size} for axis in mesh.axes)}
    if mesh.device_ids:
        count, devices = len(mesh.device_ids), ", ".join(str(device) for device in mesh.device_ids)
        text = f"dense<[{devices}]> : tensor<{count}xi64>"
        result["device_ids"] = DenseElements((count,), mesh.device_ids, text)
    return result
