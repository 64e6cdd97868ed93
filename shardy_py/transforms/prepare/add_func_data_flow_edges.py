"""An edge op for each value that flows between calls and functions, so that calls share functions.

Mirrors add_func_data_flow_edges.cc::AddFuncDataFlowEdgesPass.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from shardy_py.ir.graph.graphs import main_function
from shardy_py.ir.graph.op_names import CALL, FUNC_DATA_FLOW_EDGE
from shardy_py.ir.graph.program import Block, Op, Program, Value
from shardy_py.ir.graph.symbols import has_body
from shardy_py.ir.graph.types import static_shape
from shardy_py.ir.graph.walk import entry_arguments, ops_named
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.values import NoFields


class AddFuncDataFlowEdgesPass(NoFields):
    """Insert an ``sdy.func_data_flow_edge`` after each function argument and call result; all its users use the edge.

    The arguments of the main function get none: nobody in the module calls it.
    """

    name: ClassVar[str] = "sdy-add-func-data-flow-edges"

    def run(self, program: Program, context: PassContext) -> None:
        """Add the edges, with the shardings of the values they stand for.

        Raises:
            UnsupportedError: several functions, none of them ``main``.
        """
        main = main_function(program)
        for function in program.functions.values():
            if function is not main and has_body(function):
                _add_edges(program, entry_arguments(function), function.regions[0].blocks[0], None)
        for call in ops_named(program, CALL):
            if call.parent is not None:
                _add_edges(program, call.results, call.parent, call)


def _add_edges(program: Program, values: Iterable[Value], block: Block, anchor: Op | None) -> None:
    """Insert the edges of values after an op, in order; at the start of the block where that is None."""
    for value in values:
        if static_shape(value.type) is None:
            continue
        edge = Op(program, FUNC_DATA_FLOW_EDGE, [value], [value.type])
        anchor = block.insert_after(anchor, edge)
        value.replace_all_uses_with(edge.result, except_op=edge)
        sharding = program.shardings.get(value.id)
        if sharding is not None:
            program.shardings[edge.result.id] = sharding
