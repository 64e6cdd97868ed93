"""The body of a function in the place of a call of it."""

from __future__ import annotations

from shardy_py.ir.graph.graphs import callee_of
from shardy_py.ir.graph.op_names import CALL
from shardy_py.ir.graph.program import Op
from shardy_py.ir.graph.rewriting import ValueMapping, clone_op
from shardy_py.ir.graph.symbols import has_body
from shardy_py.ir.graph.walk import entry_arguments, ops_named


def inline_call(call: Op) -> None:
    """Put the body of the called function in the place of a call; a function that nothing calls any more goes.

    A call of a function without a body, or with several blocks, stays as it is.
    """
    program, block = call.program, call.parent
    callee = program.functions.get(callee_of(call) or "")
    if block is None or callee is None or not has_body(callee) or len(callee.regions[0].blocks) > 1:
        return
    mapping: ValueMapping = {
        argument.id: value for argument, value in zip(entry_arguments(callee), call.operands, strict=True)
    }
    *ops, terminator = callee.regions[0].block.ops
    for op in ops:
        block.insert_before(call, clone_op(op, mapping))
    for result, returned in zip(call.results, terminator.operands, strict=True):
        result.move_uses_to(mapping.get(returned.id, returned))
    call.erase()
    is_private = callee.attributes.get("sym_visibility") == "private"
    if is_private and not any(callee_of(op) == callee.attributes["sym_name"] for op in ops_named(program, CALL)):
        callee.erase()
