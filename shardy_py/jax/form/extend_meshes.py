"""Extend all meshes to the same devices: XLA compiles for one list of them."""

from __future__ import annotations

from typing import ClassVar

from shardy_py.ir.graph.attributes import RawAttribute
from shardy_py.ir.graph.op_names import MESH
from shardy_py.ir.graph.program import Program
from shardy_py.ir.graph.walk import ops_named
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.jax.devices import device_count, extend_mesh
from shardy_py.values import frozen

_PARTITIONS, _REPLICAS = "mhlo.num_partitions", "mhlo.num_replicas"


@frozen
class ExtendMeshesPass:
    """Give meshes of fewer devices an axis more, along which everything is replicated; note how many devices there are.

    A mesh of one given device stays as it is.
    """

    name: ClassVar[str] = "xla-extend-meshes"

    def run(self, program: Program, context: PassContext) -> None:
        """Replace the meshes.

        Raises:
            UnsupportedError: a mesh cannot be repeated over the devices of the largest.
        """
        count = device_count(program.meshes.values())
        for op in ops_named(program, MESH):
            mesh = extend_mesh(op.attributes["mesh"], count)
            if mesh != op.attributes["mesh"]:
                op.attributes["mesh"] = mesh
                op.attributes.pop("stablehlo.mesh", None)
        program.attributes[_PARTITIONS] = RawAttribute(f"{count} : i32")
        program.attributes[_REPLICAS] = RawAttribute("1 : i32")
