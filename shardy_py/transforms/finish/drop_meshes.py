"""Remove the named meshes of a program: inline them wherever they are named, or drop them with all shardings.

Mirrors inline_meshes.cc::InlineMeshesPass and drop_sharding_and_mesh.cc::DropShardingAndMeshPass.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import ClassVar

from attrs import evolve

from shardy_py.ir.graph.op_names import FUNCTION, MESH
from shardy_py.ir.graph.program import Op, Program, Value
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
    """Replace the names of meshes by the meshes where ops of other dialects refer to them."""
    meshes = program.meshes
    for op in ops_among(program, semantics.names_with_mesh_reference(program.op_names)):
        reference = semantics.get_mesh_reference(op)
        name = reference.get_mesh(op) if reference is not None else None
        if reference is not None and isinstance(name, str) and name in meshes:
            reference.set_mesh(op, meshes[name])


_SHARDING = "sdy.sharding"


class DropShardingAndMeshPass(NoFields):
    """Remove ``sdy.sharding`` from all ops, function arguments and function results, and erase the meshes.

    Ops that cannot be without a sharding, such as constraints, must be gone.
    """

    name: ClassVar[str] = "sdy-drop-sharding-and-mesh"

    def run(self, program: Program, context: PassContext) -> None:
        """Drop the shardings of all values, and the meshes."""
        for op in list(program.walk()):
            if op.name == MESH:
                op.erase()
                continue
            if _SHARDING in op.attributes:
                del op.attributes[_SHARDING]
            for value in _values_with_that_attribute(op, context.semantics):
                program.shardings.pop(value.id, None)


def _values_with_that_attribute(op: Op, semantics: OpSemantics) -> Sequence[Value]:
    """Return the values whose shardings ``sdy.sharding`` holds, and no attribute of the op's own."""
    if op.name == FUNCTION:
        arguments = [value for region in op.regions for block in region.blocks[:1] for value in block.arguments]
        return [*arguments, *op.function_results]
    data_flow = semantics.get_data_flow(op)
    if data_flow is None:
        return op.results if semantics.get_sharding_attribute(op) == _SHARDING else ()
    values: list[Value] = []
    if not data_flow.get_block_argument_edge_owner_shardings(op):
        values += data_flow.get_block_argument_edge_owners(op)
    if not data_flow.get_op_result_edge_owner_shardings(op):
        values += data_flow.get_op_result_edge_owners(op)
    return values
