"""Move the shardings of edges between calls and functions back to arguments and results, and take the edges out.

Mirrors sink_func_data_flow_edges.cc::SinkFuncDataFlowEdgesPass.
"""

from __future__ import annotations

from typing import ClassVar

from shardy_py.ir.graph.op_names import FUNC_DATA_FLOW_EDGE
from shardy_py.ir.graph.program import Program
from shardy_py.ir.graph.shardings import set_sharding
from shardy_py.ir.graph.walk import ops_named
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.sharding.tensor import TensorSharding
from shardy_py.values import NoFields


class SinkFuncDataFlowEdgesPass(NoFields):
    """Replace every ``sdy.func_data_flow_edge`` by what it stands for, which takes over its sharding.

    An edge without a sharding opens the one its value had.
    """

    name: ClassVar[str] = "sdy-sink-func-data-flow-edges"

    def run(self, program: Program, context: PassContext) -> None:
        """Sink all edges of a program."""
        table = program.shardings
        for edge in ops_named(program, FUNC_DATA_FLOW_EDGE):
            value, result = edge.operands[0], edge.results[0]
            sharding = table.pop(result.id, None)
            old = table.get(value.id)
            if sharding is not None:
                set_sharding(program, value, sharding)
            elif old is not None:
                set_sharding(program, value, TensorSharding.fully_open(old.mesh, old.rank))
            result.replace_all_uses_with(value)
            edge.erase()
