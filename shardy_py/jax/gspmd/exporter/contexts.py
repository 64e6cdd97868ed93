"""The manual axes around functions: those where they are called."""

from __future__ import annotations

from shardy_py.ir.graph.graphs import callee_of
from shardy_py.ir.graph.op_names import CALL
from shardy_py.ir.graph.program import Op, Program
from shardy_py.ir.graph.rewriting import clone_op
from shardy_py.ir.graph.symbols import SymbolTable, functions_callees_first, set_callee
from shardy_py.ir.graph.walk import all_in_region
from shardy_py.jax.gspmd.exporter.texts import Context, Texts


def settle_contexts(program: Program, texts: Texts) -> None:
    """Record the manual axes around each function; a function called under different axes is copied for each.

    In a manual computation values have other shardings than outside of it, so a function is either inside or outside.
    """
    symbols = SymbolTable(program)
    variants: dict[Op, dict[Context, Op]] = {}
    for function in reversed(functions_callees_first(program)):
        for variant in list(variants.get(function, {}).values()) or [function]:
            for call in _calls_in(variant):
                callee = program.functions.get(callee_of(call) or "")
                if callee is not None:
                    _enter(call, callee, variants.setdefault(callee, {}), symbols, texts)


def _calls_in(function: Op) -> list[Op]:
    return [op for region in function.regions for op in all_in_region(region) if op.name == CALL]


def _enter(call: Op, callee: Op, known: dict[Context, Op], symbols: SymbolTable, texts: Texts) -> None:
    """Replace the callee of a call by the copy for its manual axes."""
    context = texts.around(call.parent)
    if context not in known:
        function = callee
        if known:
            function = clone_op(callee, {})
            set_callee(call, symbols.insert(function))
        known[context] = function
        texts.contexts[function] = context
    elif known[context] is not callee:
        set_callee(call, known[context].attributes["sym_name"])
