"""Calls of functions that stand for named computations, named tensors and microbatches."""

from __future__ import annotations

from typing import Any, ClassVar

from shardy_py.errors import Diagnostic, UnsupportedError
from shardy_py.ir.graph.attributes import SymbolRef
from shardy_py.ir.graph.graphs import callee_of, callers_first
from shardy_py.ir.graph.op_names import CALL, RETURN
from shardy_py.ir.graph.program import Op, Program
from shardy_py.ir.graph.rewriting import clone_region
from shardy_py.ir.graph.walk import ops_named
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.mpmd.dialect.fragments import unsigned
from shardy_py.mpmd.dialect.name_marks import (
    marked_call,
    marked_computation,
    marked_exchange,
    marked_tensor,
)
from shardy_py.mpmd.dialect.op_names import BROADCAST, CALL_COUNTER, NAMED_COMPUTATION, NAMED_TENSOR, ORIGIN, REDUCE
from shardy_py.mpmd.dialect.op_names import CALL as MPMD_CALL
from shardy_py.mpmd.dialect.op_names import RETURN as MPMD_RETURN
from shardy_py.mpmd.dialect.origins import UserOrigin
from shardy_py.mpmd.passes.inference.combiners import reduction_attribute
from shardy_py.values import frozen


@frozen
class CallsToNamedOpsPass:
    """Turn calls of functions into named computations, named tensors and ``mpmd.call``.

    Functions of JAX say by their names what they are; others are named computations where they are among the names.

    Args:
        names: The names of functions whose calls are named computations.
    """

    name: ClassVar[str] = "mpmd-calls-to-named-ops"

    names: tuple[str, ...] = ()

    def run(self, program: Program, context: PassContext) -> None:
        """Rewrite all calls of such functions; the functions stay until they are erased as unused.

        Raises:
            UnsupportedError: a function calls itself.
        """
        callers_first(program)  # Bodies that hold calls of themselves would be copied for ever.
        # Bodies are copied with the calls in them, so there is another round for these.
        while calls := [call for call in ops_named(program, CALL) if self._is_marked(callee_of(call) or "")]:
            for call in calls:
                if call.parent is not None:
                    self._rewrite(call)
            self._erase_unused(program)

    def _is_marked(self, name: str) -> bool:
        marks = (marked_computation(name), marked_tensor(name), marked_call(name), marked_exchange(name))
        return name in self.names or any(mark is not None for mark in marks)

    def _rewrite(self, call: Op) -> None:
        name, program, block = callee_of(call) or "", call.program, call.parent
        assert block is not None
        tensor, counter, exchange = marked_tensor(name), marked_call(name), marked_exchange(name)
        types = [value.type for value in call.results]
        if tensor is not None or exchange is not None:
            # A tree of arrays has one op for each.
            op_name, attributes = _op_for_each(tensor, exchange)
            for operand, result in zip(call.operands, call.results, strict=True):
                new = Op(program, op_name, [operand], [result.type], dict(attributes))
                result.replace_all_uses_with(block.insert_before(call, new).results[0])
            call.erase()
            return
        if counter is not None:
            attributes = {"callee": SymbolRef(name, str(call.attributes["callee"])), CALL_COUNTER: unsigned(counter)}
            new = Op(program, MPMD_CALL, call.operands, types, attributes)
        else:
            origin = marked_computation(name) or UserOrigin(name)
            new = _computation(call, origin)
        block.insert_before(call, new)
        for result, value in zip(call.results, new.results, strict=True):
            result.replace_all_uses_with(value)
        call.erase()

    def _erase_unused(self, program: Program) -> None:
        called = {callee_of(call) for call in ops_named(program, CALL)}
        for name, function in program.functions.items():
            is_computation = marked_call(name) is None and self._is_marked(name)
            if is_computation and name not in called and function.attributes.get("sym_visibility") == "private":
                function.erase()


def _op_for_each(tensor: str | None, exchange: str | None) -> tuple[str, dict[str, Any]]:
    """Return the op that stands for a function of arrays one by one, and its attributes."""
    if exchange == "reduce":
        return REDUCE, {"reduction": reduction_attribute("none")}
    return (BROADCAST, {}) if exchange is not None else (NAMED_TENSOR, {"name": tensor})


def _computation(call: Op, origin: UserOrigin) -> Op:
    """Return a named computation with a copy of the body of a function."""
    program = call.program
    function = program.functions[callee_of(call) or ""]
    if not function.regions or len(function.regions[0].blocks) != 1:
        message = f"the function of the named computation {origin.name!r} has no body of one block"
        raise UnsupportedError(Diagnostic("no-body", message, call.location, call.name, "give it one"))
    region = clone_region(program, function.regions[0], {})
    block = region.block
    terminator = block.terminator
    assert terminator is not None
    assert terminator.name == RETURN
    block.append(Op(program, MPMD_RETURN, terminator.operands))
    terminator.erase()
    types = [value.type for value in call.results]
    return Op(program, NAMED_COMPUTATION, call.operands, types, {ORIGIN: origin.attribute}, [region])
