"""Reshard the results of calls whose functions return them in another sharding.

The results of functions are first sharded like the values that they return.

Mirrors propagate_to_func_results.cc::PropagateToFuncResultsPass and
insert_func_call_reshards.cc::InsertFuncCallReshardsPass.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from shardy_py.ir.graph.graphs import main_function
from shardy_py.ir.graph.op_names import CALL, RESHARD, RETURN
from shardy_py.ir.graph.program import Op, Program, Value
from shardy_py.ir.graph.shardings import complete, complete_unless_maximal, set_shardings
from shardy_py.ir.graph.symbols import SymbolTable, has_body
from shardy_py.ir.graph.walk import ops_named
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.tensor import TensorSharding
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


class InsertFuncCallReshardsPass(NoFields):
    """Shard the results of calls like those of their functions, with an ``sdy.reshard`` after those that differ."""

    name: ClassVar[str] = "sdy-insert-func-call-reshards"

    def run(self, program: Program, context: PassContext) -> None:
        """Insert the reshards of all calls.

        Raises:
            VerificationError: a function that does not exist is called.
        """
        calls = ops_named(program, CALL)
        if not calls:
            return
        symbols, meshes = SymbolTable(program), program.meshes
        for call in calls:
            shardings = _result_shardings(program, symbols.callee(call), call, meshes)
            if shardings:
                _insert_reshards(program, call, shardings)


def _result_shardings(
    program: Program, function: Op, call: Op, meshes: Mapping[str, Mesh]
) -> tuple[TensorSharding, ...]:
    """Return the shardings in which a function returns its results: unsharded where it does not say.

    Returns:
        One sharding per result; () where neither the function nor the call has any.
    """
    shardings = complete_unless_maximal(program.shardings, function.function_results, meshes)
    if shardings:
        return shardings
    return tuple(_replicated_like(sharding) for sharding in complete(program.shardings, call.results))


def _insert_reshards(program: Program, call: Op, shardings: tuple[TensorSharding, ...]) -> None:
    table = program.shardings
    for result, sharding in zip(call.results, shardings, strict=True):
        wanted = table.get(result.id)
        if not sharding.is_equivalent(wanted, ignore_unreduced_axes=True):
            _insert_reshard(program, call, result, _replicated_like(sharding) if wanted is None else wanted)
    set_shardings(program, call.results, shardings)


def _insert_reshard(program: Program, call: Op, result: Value, sharding: TensorSharding) -> None:
    reshard = Op(program, RESHARD, [result], [result.type])
    call.parent.insert_after(call, reshard)  # type: ignore[union-attr]
    program.shardings[reshard.result.id] = sharding
    result.replace_all_uses_with(reshard.result, except_op=reshard)


def _replicated_like(sharding: TensorSharding) -> TensorSharding:
    return TensorSharding.fully_closed(sharding.mesh, sharding.rank)
