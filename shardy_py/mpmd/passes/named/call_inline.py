"""The bodies of microbatches in the places of their calls."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from shardy_py.ir.graph.program import Op, Program
from shardy_py.ir.graph.rewriting import clone_region
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.mpmd.dialect.calls import callee_of
from shardy_py.mpmd.dialect.fragments import mpmd_functions, number_of, unsigned
from shardy_py.mpmd.dialect.op_names import CALL, FRAGMENT, NAMED_COMPUTATION
from shardy_py.values import NoFields

_OWN = ("callee", "arg_attrs", "res_attrs")


class CallInlinePass(NoFields):
    """Replace each ``mpmd.call`` by the body of its function; its fragments get the attributes of the call.

    So a fragment knows which microbatch it works on.
    """

    name: ClassVar[str] = "mpmd-call-inline"

    def run(self, program: Program, context: PassContext) -> None:
        """Inline in callees before their callers."""
        for function in mpmd_functions(program):
            for op in list(function.walk()):
                if op.name == CALL:
                    _inline(op)


def _inline(call: Op) -> None:
    program, block = call.program, call.parent
    assert block is not None
    region = clone_region(program, callee_of(call).regions[0], {})
    attributes = {name: call.attributes[name] for name in call.attributes if name not in _OWN}
    body = region.block
    for argument, operand in zip(body.arguments, call.operands, strict=True):
        argument.replace_all_uses_with(operand)
    terminator = body.terminator
    assert terminator is not None
    returned = list(terminator.operands)
    terminator.erase()
    for op in list(body.ops):
        body.remove(op)
        block.insert_before(call, op)
        if op.name in (FRAGMENT, NAMED_COMPUTATION):
            _set(op, attributes)
    for value, new in zip(call.results, returned, strict=True):
        value.replace_all_uses_with(new)
    call.erase()


def _set(op: Op, attributes: Mapping[str, Any]) -> None:
    for name, value in attributes.items():
        number = number_of(attributes, name) if isinstance(value, int) and not isinstance(value, bool) else None
        op.attributes[name] = value if number is None else unsigned(number)
