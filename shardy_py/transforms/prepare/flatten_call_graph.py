"""Give every call a function of its own, so that each can be sharded as that call needs it.

Mirrors flatten_call_graph.cc::FlattenCallGraphPass.
"""

from __future__ import annotations

from typing import ClassVar

from shardy_py.ir.graph.program import Program
from shardy_py.ir.graph.rewriting import clone_function_recursively
from shardy_py.ir.graph.symbols import SymbolTable, calls_callees_first, has_body, set_callee
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.transforms.prepare.call_copy_limit import refuse_too_many_copies
from shardy_py.values import NoFields


class FlattenCallGraphPass(NoFields):
    """Copy a function for every call of it but the first, and with it all the functions it calls.

    Functions without a body have nothing that could be sharded; all their calls share them.
    """

    name: ClassVar[str] = "sdy-flatten-call-graph"

    def run(self, program: Program, context: PassContext) -> None:
        """Copy the functions to the end of the module, the copy of a callee before that of its caller.

        Raises:
            UnsupportedError: functions call each other in a circle, or there would be too many copies.
            VerificationError: a function that does not exist is called.
        """
        refuse_too_many_copies(program)
        symbols = SymbolTable(program)
        called: set[int] = set()
        for call in calls_callees_first(program):
            function = symbols.callee(call)
            if function.id not in called:
                called.add(function.id)
            elif has_body(function):
                set_callee(call, symbols.insert(clone_function_recursively(function, symbols)))
