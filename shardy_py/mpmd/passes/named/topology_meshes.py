"""One mesh per mesh of the topology, for topologies whose meshes differ.

Mirrors mpmd/transforms/import/generate_sdy_meshes_from_topology.cc.
"""

from __future__ import annotations

from typing import ClassVar

from attrs import evolve

from shardy_py.errors import Diagnostic, OptionError
from shardy_py.ir.graph.op_names import MESH
from shardy_py.ir.graph.program import Op, Program
from shardy_py.ir.graph.shardings import SHARDING
from shardy_py.ir.graph.walk import entry_arguments
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.mpmd.dialect.calls import attributes_at, set_attributes_at
from shardy_py.mpmd.dialect.fragments import mpmd_functions
from shardy_py.mpmd.dialect.types import Topology, require_topology
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.tensor import TensorSharding
from shardy_py.values import NoFields

EMPTY_MESH = "empty_mesh"


class GenerateSdyMeshesFromTopologyPass(NoFields):
    """Replace the meshes of the module by those of the topology; a sharding is of the mesh that its axes name.

    The axis ``tpu_x`` is one of the mesh ``tpu``. A sharding without axes is of a mesh without axes.
    """

    name: ClassVar[str] = "mpmd-generate-sdy-meshes-from-topology"

    def run(self, program: Program, context: PassContext) -> None:
        """Replace the meshes and rewrite all shardings.

        Raises:
            OptionError: an axis does not begin with the name of a mesh.
        """
        functions = mpmd_functions(program)
        if not functions:
            return
        topology, meshes = require_topology(functions[-1]), program.meshes
        table = program.shardings
        for id_, sharding in list(table.items()):
            mesh = sharding.mesh if isinstance(sharding.mesh, Mesh) else meshes.get(sharding.mesh)
            if mesh is None or mesh.axes:
                table[id_] = evolve(sharding, mesh=_mesh_of(sharding, topology))
        _store_at_functions(program)
        for op in [op for op in program.body.ops if op.name == MESH and op.attributes["mesh"].axes]:
            op.erase()
        all_meshes = dict(topology.meshes)
        if any(sharding.mesh == EMPTY_MESH for sharding in table.values()):
            all_meshes[EMPTY_MESH] = Mesh()
        anchor: Op | None = None
        for name, mesh in all_meshes.items():
            if name not in program.meshes:
                op = Op(program, MESH, attributes={"sym_name": name, "mesh": mesh})
                anchor = program.body.insert_after(anchor, op)


def _store_at_functions(program: Program) -> None:
    """Write the shardings of arguments and results to functions, where passes that replace these look for them."""
    table = program.shardings
    for function in program.functions.values():
        arguments = entry_arguments(function)
        for where, values in (("arg_attrs", arguments), ("res_attrs", function.function_results)):
            items = attributes_at(function, where, len(values))
            for value, item in zip(values, items, strict=True):
                if value.id in table:
                    item[SHARDING] = table[value.id]
            set_attributes_at(function, where, items)


def _mesh_of(sharding: TensorSharding, topology: Topology) -> str:
    """Return the name of the mesh that the axes of a sharding name, before their first underscore."""
    names = {axis.name.partition("_")[0] if "_" in axis.name else "" for axis in sharding.axes()}
    if not names:
        return EMPTY_MESH
    name = min(names)
    if len(names) > 1 or name not in topology.names:
        message = f"the axes of the sharding {sharding} do not begin with the name of one mesh of the topology"
        hint = f"name them after a mesh, such as {topology.names[0]}_x; the meshes are {', '.join(topology.names)}"
        raise OptionError(Diagnostic("no-mesh-of-axes", message, hint=hint))
    return name
