"""Put the body of a function where it is called, inside a named computation that can be taken out again.

Calls that stay get the shardings of their function's results.

Mirrors import_func_calls.cc::ImportFuncCallsPass and
propagate_sharding_from_func_to_call.cc::PropagateShardingFromFuncToCallPass.
"""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from typing import ClassVar

from shardy_py.errors import Diagnostic
from shardy_py.ir.graph.attributes import Attribute
from shardy_py.ir.graph.op_names import CALL, NAMED_COMPUTATION, REGION_RETURN
from shardy_py.ir.graph.program import Op, Program, Region
from shardy_py.ir.graph.rewriting import clone_region, move_region, park
from shardy_py.ir.graph.shardings import complete_unless_maximal, set_shardings
from shardy_py.ir.graph.symbols import (
    EXECUTION_THREAD,
    SymbolTable,
    calls_callees_first,
    has_body,
    original_function_name,
)
from shardy_py.ir.graph.walk import ops_named
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.sharding.tensor import TensorSharding, symbol
from shardy_py.transforms.prepare.add_data_flow_edges import add_edges
from shardy_py.transforms.prepare.flatten_call_graph import refuse_too_many_copies
from shardy_py.values import NoFields, frozen

_OF_THE_CALL = ("callee", "no_inline", "arg_attrs", "res_attrs", "sdy.sharding")
"""Attributes that mean something to a call only."""


@frozen
class ImportFuncCallsPass:
    """Replace every call by an ``sdy.named_computation`` with the callee's body, and erase the callee.

    Calls of functions without a body stay.

    Args:
        add_data_flow_edges_on_named_computations: Whether to add edges on the arguments and results of all named
            computations; for when those of the other ops are there already.
    """

    name: ClassVar[str] = "sdy-import-func-calls"

    add_data_flow_edges_on_named_computations: bool = True

    def run(self, program: Program, context: PassContext) -> None:
        """Replace the calls, those in callees first; warn of functions whose body had to be copied.

        Raises:
            UnsupportedError: functions call each other in a circle, or there would be too many copies.
            VerificationError: a function that does not exist is called.
        """
        refuse_too_many_copies(program)
        had_computations = NAMED_COMPUTATION in program.op_names
        importer = _Importer(program, context)
        for call in calls_callees_first(program):
            importer.replace(call)
        importer.erase_functions()
        if self.add_data_flow_edges_on_named_computations:
            _add_edges(program, context, ops_named(program, NAMED_COMPUTATION) if had_computations else importer.new)


@frozen
class _Imported:
    """The named computation with the body of a function, and the shardings of its arguments."""

    function: Op
    region: Region
    shardings: tuple[TensorSharding, ...]


class _Importer:
    """Replaces calls; the first call of a function takes its body, the others get copies.

    Attributes:
        new: The named computations that took the places of calls, and those in copies of functions.
    """

    __slots__ = ("_context", "_imported", "_meshes", "_program", "_symbols", "new")

    def __init__(self, program: Program, context: PassContext) -> None:
        self._program = program
        self._context = context
        self._symbols = SymbolTable(program)
        self._meshes = program.meshes
        self._imported: dict[int, _Imported] = {}
        self.new: list[Op] = []

    def replace(self, call: Op) -> None:
        """Replace one call."""
        function = self._symbols.callee(call)
        imported = self._imported.get(function.id)
        if imported is None and not has_body(function):
            return
        computation = self._new_computation(call, function)
        if imported is None:
            region = move_region(function, computation, terminator=REGION_RETURN)
            shardings = complete_unless_maximal(self._program.shardings, region.blocks[0].arguments, self._meshes)
            imported = self._imported[function.id] = _Imported(function, region, shardings)
            self.new.append(computation)
        else:
            self._warn(call, function)
            region = computation.add_region(clone_region(self._program, imported.region, {}))
            # With those in the copy.
            self.new += [op for op in computation.walk() if op.name == NAMED_COMPUTATION]
        set_shardings(self._program, region.blocks[0].arguments, imported.shardings)
        for result, new_result in zip(call.results, computation.results, strict=True):
            result.replace_all_uses_with(new_result)
        if self._context.copies is not None:
            self._context.copies.replaced(call, computation)
        elif region is imported.region:
            park(computation, call, function)
        call.erase()

    def _new_computation(self, call: Op, function: Op) -> Op:
        types = [value.type for value in call.results]
        computation = Op(self._program, NAMED_COMPUTATION, call.operands, types, _attributes(call, function))
        table = self._program.shardings
        for result, new_result in zip(call.results, computation.results, strict=True):
            sharding = table.pop(result.id, None)
            if sharding is not None:
                table[new_result.id] = sharding
        call.parent.insert_before(call, computation)  # type: ignore[union-attr]
        return computation

    def _warn(self, call: Op, function: Op) -> None:
        name = symbol(function.attributes["sym_name"])
        message = f"function {name} has several calls, its body is copied for each"
        hint = "run sdy-flatten-call-graph first"
        self._context.warnings.append(Diagnostic("copied-function", message, call.location, call.name, hint))

    def erase_functions(self) -> None:
        """Erase the functions whose bodies were taken."""
        for imported in self._imported.values():
            self._symbols.erase(imported.function)


def _attributes(call: Op, function: Op) -> dict[str, Attribute]:
    result = copy(call.attributes)
    for name in _OF_THE_CALL:
        if name in result:
            del result[name]
    result["name"] = original_function_name(function)
    thread = function.attributes.get(EXECUTION_THREAD)
    if thread is not None:
        result[EXECUTION_THREAD] = thread
    return result  # type: ignore[return-value]


def _add_edges(program: Program, context: PassContext, computations: Iterable[Op]) -> None:
    for computation in computations:
        data_flow = context.semantics.get_data_flow(computation)
        if data_flow is not None:
            add_edges(program, data_flow.get_block_argument_edge_owners(computation))
            add_edges(program, data_flow.get_op_result_edge_owners(computation))


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
