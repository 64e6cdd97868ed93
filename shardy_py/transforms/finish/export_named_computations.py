"""Make functions and calls of named computations again.

Mirrors export_named_computations.cc::ExportNamedComputationsPass.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import TYPE_CHECKING, ClassVar

from shardy_py.ir.graph.attributes import Attribute, SymbolRef
from shardy_py.ir.graph.data_flow import edge_user, take_out_edge
from shardy_py.ir.graph.op_names import CALL, FUNCTION, NAMED_COMPUTATION, RETURN
from shardy_py.ir.graph.program import Op, Program, Value
from shardy_py.ir.graph.rewriting import move_region, pop_parked, restore
from shardy_py.ir.graph.shardings import complete, set_shardings
from shardy_py.ir.graph.symbols import EXECUTION_THREAD, ORIGINAL_FUNCTION_NAME, SYMBOL_NAME, SymbolTable
from shardy_py.ir.graph.types import function_type
from shardy_py.ir.graph.walk import inner_first, ops_named
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.sharding.tensor import symbol
from shardy_py.transforms.finish.sink_data_flow_edges import sink_shardings
from shardy_py.values import NoFields

if TYPE_CHECKING:
    from shardy_py.transforms.constant_copies import CopyLog

_OF_THE_COMPUTATION = ("name", "in_shardings", "out_shardings", EXECUTION_THREAD)
"""Attributes that a call does not take over."""

_TYPE = "function_type"


class ExportNamedComputationsPass(NoFields):
    """Replace every ``sdy.named_computation`` by a call of a new private function with its body.

    Data-flow edges on the arguments and results are sunk: the function takes over the shardings of its arguments, the
    call those of the results. The results of the function itself get none.
    """

    name: ClassVar[str] = "sdy-export-named-computations"

    def run(self, program: Program, context: PassContext) -> None:
        """Add the functions at the end of the module, those of inner computations before those of outer ones."""
        computations = inner_first(ops_named(program, NAMED_COMPUTATION))
        if not computations:
            return
        symbols = SymbolTable(program)
        edges: list[Op] = []
        for computation in computations:
            edges += _export(program, computation, symbols, context.copies)
        for edge in edges:
            take_out_edge(program, edge)


def _export(program: Program, computation: Op, symbols: SymbolTable, log: CopyLog | None) -> list[Op]:
    """Replace one computation and return the edges on its results, which are those of the call now."""
    edges_of_arguments = _sink(program, _arguments(computation))
    edges_of_results = _sink(program, computation.results)
    for edge in edges_of_arguments:
        take_out_edge(program, edge)
    # The call and the function from before, where there were any: nothing new has to be made for them.
    old_call, old_function = pop_parked(computation) or (None, None)
    name = symbols.insert(_new_function(program, computation, old_function))
    call = _new_call(program, computation, name, old_call)
    for result, new_result in zip(computation.results, call.results, strict=True):
        result.replace_all_uses_with(new_result)
    if log is not None:
        log.replaced(computation, call)
    computation.erase()
    return edges_of_results


def _sink(program: Program, owners: Sequence[Value]) -> list[Op]:
    """Give values the shardings of their edges, so that all have one or none, and return the edges."""
    edges = [edge_user(owner) for owner in owners]
    if not sink_shardings(program, owners, edges):
        set_shardings(program, owners, complete(program.shardings, owners))
    return [edge for edge in edges if edge is not None]


def _new_function(program: Program, computation: Op, old: Op | None) -> Op:
    """Return a function with the body of a computation, in no block yet."""
    name, thread = computation.attributes["name"], computation.attributes.get(EXECUTION_THREAD)
    attributes: dict[str, Attribute] = {
        SYMBOL_NAME: name,
        "sym_visibility": "private",
        ORIGINAL_FUNCTION_NAME: name,
    }
    if thread is not None:
        attributes[EXECUTION_THREAD] = thread
    results = [value.type for value in computation.results]
    if old is None or _TYPE not in old.attributes:
        attributes[_TYPE] = function_type([value.type for value in _arguments(computation)], results)
    if old is not None:
        function = restore(old, (), attributes, unchanged=(_TYPE,))
    else:
        function = Op(program, FUNCTION, attributes=attributes)
        program.new_function_results(function, results)
    move_region(computation, function, terminator=RETURN)
    return function


def _new_call(program: Program, computation: Op, callee: str, old: Op | None) -> Op:
    """Insert the call before a computation, with its attributes and the shardings of its results."""
    reference = SymbolRef(callee, symbol(callee))
    if old is not None:
        attributes = computation.attributes
        remaining = {name: attributes[name] for name in attributes if name not in _OF_THE_COMPUTATION}
        call = restore(old, computation.operands, {**remaining, "callee": reference})
    else:
        attributes = copy(computation.attributes)
        for name in _OF_THE_COMPUTATION:
            if name in attributes:
                del attributes[name]
        attributes["callee"] = reference
        types = [value.type for value in computation.results]
        call = Op(program, CALL, computation.operands, types, attributes)
    computation.parent.insert_before(computation, call)  # type: ignore[union-attr]
    table = program.shardings
    for result, new_result in zip(computation.results, call.results, strict=True):
        program.originals.setdefault(new_result.id, result.id)
        sharding = table.pop(result.id, None)
        if sharding is not None:
            table[new_result.id] = sharding
    return call


def _arguments(computation: Op) -> Sequence[Value]:
    return computation.regions[0].block.arguments
