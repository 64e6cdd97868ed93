"""Tokens made inside of the fragments that use them: a token is on no mesh.

Mirrors mpmd/transforms/export/sink_create_token_into_fragments.cc.
"""

from __future__ import annotations

from typing import ClassVar

from shardy_py.ir.graph.program import Op, Program, Value
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.mpmd.dialect.calls import block_of
from shardy_py.mpmd.dialect.fragments import body_of, is_fragment, mpmd_functions
from shardy_py.mpmd.passes.region_ops import rebuild
from shardy_py.values import NoFields

_TOKEN = ".token"


class SinkCreateTokenIntoFragmentsPass(NoFields):
    """Make each token that a fragment gets anew inside of it, and drop the tokens that fragments return.

    A token of the type ``!dialect.token`` is made by ``dialect.create_token``.
    """

    name: ClassVar[str] = "mpmd-sink-create-token-into-fragments"

    def run(self, program: Program, context: PassContext) -> None:
        """Visit the fragments of all functions, users before producers."""
        for function in mpmd_functions(program):
            fragments = [op for op in block_of(function).ops if is_fragment(op)]
            for op in reversed(fragments):
                _sink(op)


def is_token(value: Value) -> bool:
    """Return whether a value is a token."""
    return value.type.text.startswith("!") and value.type.text.endswith(_TOKEN)


def _sink(op: Op) -> None:
    body, program = body_of(op), op.program
    operands = [value.index for value in body.arguments if not is_token(value)]
    results = [value.index for value in op.results if not is_token(value) or value.uses]
    anchor: Op | None = None
    for argument in body.arguments:
        if is_token(argument):
            creator = argument.type.text.removeprefix("!").removesuffix(_TOKEN) + ".create_token"
            anchor = body.insert_after(anchor, Op(program, creator, (), [argument.type]))
            argument.replace_all_uses_with(anchor.results[0])
    if len(operands) < len(op.operands) or len(results) < len(op.results):
        rebuild(op, operands, results)
