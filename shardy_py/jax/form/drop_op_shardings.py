"""Take the shardings off ops: XLA keeps lists of them while it changes the number of results, and fails."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from shardy_py.ir.graph.program import Program
from shardy_py.ir.graph.shardings import SHARDING
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.sharding.manual_axes import resolve_mesh
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.tensor import TensorShardingPerValue
from shardy_py.values import frozen


@frozen
class DropOpShardingsPass:
    """Remove ``sdy.sharding`` from ops, but for those placed on one device; constraints carry the shardings by now."""

    name: ClassVar[str] = "xla-drop-op-shardings"

    def run(self, program: Program, context: PassContext) -> None:
        """Remove the attributes and the entries of the table."""
        meshes = program.meshes
        for op in program.walk():
            attribute = op.attributes.get(SHARDING)
            if not isinstance(attribute, TensorShardingPerValue):
                continue
            if any(_is_maximal(sharding.mesh, meshes) for sharding in attribute.shardings):
                continue
            del op.attributes[SHARDING]
            for value in op.results:
                program.shardings.pop(value.id, None)


def _is_maximal(mesh: str | Mesh, meshes: Mapping[str, Mesh]) -> bool:
    resolved = resolve_mesh(mesh, meshes)
    return resolved is not None and resolved.is_maximal
