"""Give calls the shardings that the called functions ask for their results.

Mirrors propagate_sharding_from_func_to_call.cc::PropagateShardingFromFuncToCallPass.
"""

from __future__ import annotations

from typing import ClassVar

from shardy_py.ir.graph.op_names import CALL
from shardy_py.ir.graph.program import Program
from shardy_py.ir.graph.shardings import complete_unless_maximal, set_shardings
from shardy_py.ir.graph.symbols import SymbolTable
from shardy_py.ir.graph.walk import ops_named
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.values import NoFields


class PropagateShardingFromFuncToCallPass(NoFields):
    """Copy the result shardings of functions to the calls that have none at all, not even empty ones."""

    name: ClassVar[str] = "sdy-propagate-sharding-from-func-to-call"

    def run(self, program: Program, context: PassContext) -> None:
        """Rewrite the shardings of all calls."""
        calls = ops_named(program, CALL)
        if not calls:
            return
        symbols, meshes, table = SymbolTable(program), program.meshes, program.shardings
        for call in calls:
            callee = symbols.callee(call)
            if any(value.id in table for value in call.results):
                continue
            shardings = complete_unless_maximal(table, callee.function_results, meshes)
            if shardings:
                set_shardings(program, call.results, shardings)
