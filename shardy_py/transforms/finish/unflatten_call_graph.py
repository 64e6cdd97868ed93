"""Let calls share functions again: of copies that ended up alike, one is enough.

Mirrors unflatten_call_graph.cc::UnflattenCallGraphPass.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping
from typing import ClassVar

from shardy_py.ir.graph.op_names import CALL
from shardy_py.ir.graph.program import Op, Program
from shardy_py.ir.graph.shardings import complete_unless_maximal
from shardy_py.ir.graph.symbols import (
    ORIGINAL_FUNCTION_NAME,
    SYMBOL_NAME,
    SymbolTable,
    original_function_name,
    set_callee,
)
from shardy_py.ir.graph.walk import entry_arguments, ops_named
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.tensor import TensorSharding
from shardy_py.values import frozen

FUNC_MANUAL_AXES = "sdy.func_manual_axes"


@frozen
class UnflattenCallGraphPass:
    """Redirect calls to the first function with the same origin, manual axes, and shardings of arguments and results.

    Functions that lose all their calls stay, for ``symbol-dce`` to erase.

    Args:
        dedup_functions_fully: Whether functions of the same origin are one, whatever their shardings; the one with
            the most calls wins.
    """

    name: ClassVar[str] = "sdy-unflatten-call-graph"

    dedup_functions_fully: bool = False

    def run(self, program: Program, context: PassContext) -> None:
        """Redirect the calls and drop the attributes that name the origin and the manual axes.

        Raises:
            VerificationError: a function that does not exist is called.
        """
        symbols = SymbolTable(program)
        calls = [(op, symbols.callee(op)) for op in ops_named(program, CALL)]
        functions = {function.id: function for _, function in calls}.values()
        meshes = program.meshes
        exact = _numbered({function.id: _exact_key(program.shardings, function, meshes) for function in functions})
        loose = exact
        if self.dedup_functions_fully:
            loose = _numbered({function.id: _loose_key(function) for function in functions})
        chosen = _choose([function for _, function in calls], loose, exact)
        for call, function in calls:
            other = chosen[loose[function.id]]
            if other is not function:
                set_callee(call, other.attributes[SYMBOL_NAME])
        for function in program.functions.values():
            for name in (ORIGINAL_FUNCTION_NAME, FUNC_MANUAL_AXES):
                if name in function.attributes:
                    del function.attributes[name]


def _numbered(keys: Mapping[int, Hashable]) -> dict[int, int]:
    """Return keys with a number in the place of each, the same where they are equal; keys with shardings are long."""
    numbers: dict[Hashable, int] = {}
    return {function: numbers.setdefault(key, len(numbers)) for function, key in keys.items()}


def _loose_key(function: Op) -> Hashable:
    return original_function_name(function), function.attributes.get(FUNC_MANUAL_AXES)


def _exact_key(table: Mapping[int, TensorSharding], function: Op, meshes: Mapping[str, Mesh]) -> Hashable:
    arguments = complete_unless_maximal(table, entry_arguments(function), meshes)
    results = complete_unless_maximal(table, function.function_results, meshes)
    return _loose_key(function), arguments, results


def _choose(callees: list[Op], loose: Mapping[int, int], exact: Mapping[int, int]) -> dict[int, Op]:
    """Return the function that stays for each loose key: the first, until a call gives another exact key more calls.

    Args:
        callees: The functions called, one entry per call, in order.
        loose: The key per function id by which functions are the same.
        exact: The key per function id by which calls are counted.
    """
    chosen: dict[int, Op] = {}
    for function in callees:
        chosen.setdefault(loose[function.id], function)
    counts: Counter[int] = Counter()
    for function in callees:
        key = exact[function.id]
        counts[key] += 1
        if counts[key] > counts[exact[chosen[loose[function.id]].id]]:
            chosen[loose[function.id]] = function
    return chosen
