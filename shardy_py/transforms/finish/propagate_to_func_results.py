"""Shard the results of functions like the values they return, so that calls can be brought in line with them.

Mirrors propagate_to_func_results.cc::PropagateToFuncResultsPass.
"""

from __future__ import annotations

from typing import ClassVar

from shardy_py.ir.graph.graphs import main_function
from shardy_py.ir.graph.op_names import RETURN
from shardy_py.ir.graph.program import Op, Program
from shardy_py.ir.graph.symbols import has_body
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.values import NoFields


class PropagateToFuncResultsPass(NoFields):
    """Copy the shardings of returned values to the results of their function.

    The main function is left alone: propagation itself did it there.
    """

    name: ClassVar[str] = "sdy-propagate-to-func-results"

    def run(self, program: Program, context: PassContext) -> None:
        """Set the shardings, and remove those whose value has none.

        Raises:
            UnsupportedError: several functions, none of them ``main``.
        """
        main = main_function(program)
        for function in program.functions.values():
            if function is not main and has_body(function):
                _propagate(program, function)


def _propagate(program: Program, function: Op) -> None:
    terminator = function.regions[0].blocks[0].terminator
    if terminator is None or terminator.name != RETURN:
        return
    table = program.shardings
    for value, result in zip(terminator.operands, function.function_results, strict=True):
        sharding = table.get(value.id)
        if sharding is None:
            table.pop(result.id, None)
        else:
            table[result.id] = sharding
