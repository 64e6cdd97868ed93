"""Give every call a function of its own, within a limit on the size of the program, and put callers before callees.

Mirrors flatten_call_graph.cc::FlattenCallGraphPass and pre_order_funcs.cc::PreOrderFuncsPass.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from shardy_py.errors import Diagnostic, UnsupportedError
from shardy_py.ir.graph.graphs import callee_of
from shardy_py.ir.graph.op_names import CALL
from shardy_py.ir.graph.program import Op, Program
from shardy_py.ir.graph.rewriting import clone_function_recursively
from shardy_py.ir.graph.symbols import (
    SYMBOL_NAME,
    SymbolTable,
    calls_by_callee,
    calls_by_function,
    calls_callees_first,
    functions_callees_first,
    has_body,
    set_callee,
)
from shardy_py.ir.graph.walk import all_in_region, ops_named
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.sharding.tensor import symbol
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


MAX_COPIED_OPS = 500_000
"""The limit on the ops in copies of functions: they double with every function that calls the next one twice."""


def refuse_too_many_copies(program: Program) -> None:
    """Check that copying each function for every call of it leaves the program at a size that can be handled.

    Raises:
        UnsupportedError: it does not; the error names the function with the most copies.
    """
    calls = ops_named(program, CALL)
    if not calls or all(len(calls) < 2 for calls in calls_by_callee(program).values()):
        return
    functions = functions_callees_first(program)
    copies = _instances(functions, calls_by_function(program))
    # The main function is the largest one of most programs, and nothing calls it.
    functions = [function for function in functions if copies[_name(function)] > 1]
    sizes = {_name(function): sum(len(all_in_region(region)) for region in function.regions) for function in functions}
    if sum((copies[name] - 1) * size for name, size in sizes.items()) <= MAX_COPIED_OPS:
        return
    worst = max(functions, key=lambda function: copies[_name(function)] * sizes[_name(function)])
    count = copies[_name(worst)]
    shown = f"{count:,}" if count < 10**15 else "more than 10^15"
    raise UnsupportedError(
        Diagnostic(
            "too-many-copies",
            f"the calls of functions in each other multiply: {symbol(_name(worst))} alone would have {shown} copies",
            location=worst.location,
            op=worst.name,
            hint="let all calls of a function share its shardings: --dedup-functions-fully, dedup_functions_fully=True",
        )
    )


def _name(function: Op) -> str:
    name: str = function.attributes[SYMBOL_NAME]
    return name


def _instances(functions: list[Op], calls_in: Mapping[Op, Sequence[Op]]) -> dict[str, int]:
    """Return the number of copies of each function; 0 for one that nothing calls."""
    counts = dict.fromkeys(map(_name, functions), 0)
    for caller in reversed(functions):
        times = max(counts[_name(caller)], 1)
        for call in calls_in.get(caller, ()):
            callee = callee_of(call)
            if callee in counts:
                counts[callee] += times
    return counts


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
