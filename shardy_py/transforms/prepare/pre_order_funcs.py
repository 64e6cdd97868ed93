"""Put every function before those it calls, as propagation goes through them from top to bottom.

Mirrors pre_order_funcs.cc::PreOrderFuncsPass.
"""

from __future__ import annotations

from typing import ClassVar

from shardy_py.ir.graph.program import Program
from shardy_py.ir.graph.symbols import functions_callees_first
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.values import NoFields


class PreOrderFuncsPass(NoFields):
    """Move all functions to the end of the module, callers before callees; declarations stay where they are."""

    name: ClassVar[str] = "sdy-pre-order-funcs"

    def run(self, program: Program, context: PassContext) -> None:
        """Move the functions of a program."""
        functions = functions_callees_first(program)[::-1]
        # Where they stand like that already, what is known of the program holds.
        if functions == list(program.body.ops)[-len(functions) :]:
            return
        for function in functions:
            program.body.remove(function)
            program.body.append(function)
