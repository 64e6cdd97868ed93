"""Remove all shardings and meshes from a program.

Mirrors drop_sharding_and_mesh.cc::DropShardingAndMeshPass.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from shardy_py.ir.graph.op_names import FUNCTION, MESH
from shardy_py.ir.graph.program import Op, Program, Value
from shardy_py.ir.interfaces.ops import OpSemantics
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.values import NoFields

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
