"""Write the mesh itself wherever one is named, and take the names out of the module.

Mirrors inline_meshes.cc::InlineMeshesPass.
"""

from __future__ import annotations

from functools import cache
from typing import ClassVar

from attrs import evolve

from shardy_py.ir.graph.op_names import MESH
from shardy_py.ir.graph.program import Program
from shardy_py.ir.graph.walk import ops_among
from shardy_py.ir.interfaces.ops import OpSemantics
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.sharding.tensor import TensorSharding
from shardy_py.transforms.sharding_walker import transform_shardings
from shardy_py.values import NoFields


class InlineMeshesPass(NoFields):
    """Replace the names of meshes by the meshes and erase their symbols: the inverse of lifting inlined meshes."""

    name: ClassVar[str] = "sdy-inline-meshes"

    def run(self, program: Program, context: PassContext) -> None:
        """Rewrite all references to meshes."""
        meshes = program.meshes

        @cache
        def inline(sharding: TensorSharding) -> TensorSharding:
            mesh = meshes.get(sharding.mesh) if isinstance(sharding.mesh, str) else None
            return sharding if mesh is None else evolve(sharding, mesh=mesh)

        def concerns(sharding: TensorSharding) -> bool:
            return inline(sharding) is not sharding

        transform_shardings(program, context.semantics, inline, concerns=concerns)
        inline_mesh_references(program, context.semantics)
        for op in program.body.ops:
            if op.name == MESH:
                op.erase()


def inline_mesh_references(program: Program, semantics: OpSemantics) -> None:
    """Replace the names of meshes by the meshes in what ops of other dialects refer to."""
    meshes = program.meshes
    for op in ops_among(program, semantics.names_with_mesh_reference(program.op_names)):
        reference = semantics.get_mesh_reference(op)
        name = reference.get_mesh(op) if reference is not None else None
        if reference is not None and isinstance(name, str) and name in meshes:
            reference.set_mesh(op, meshes[name])
