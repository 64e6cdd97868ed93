"""Loops over microbatches, unrolled.

Mirrors mpmd/transforms/common/unroll_for_loops.cc.
"""

from __future__ import annotations

from typing import ClassVar

from shardy_py.errors import Diagnostic, UnsupportedError
from shardy_py.ir.graph.attributes import RawAttribute
from shardy_py.ir.graph.program import Op, Program, Value
from shardy_py.ir.graph.rewriting import clone_op
from shardy_py.ir.graph.walk import ops_named
from shardy_py.ir.interfaces.ops import ConstantLike, OpSemantics
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.mpmd.dialect.fragments import number_of, unsigned
from shardy_py.mpmd.dialect.op_names import CALL, CALL_COUNTER, FOR, UNROLL_COUNTER
from shardy_py.values import NoFields

_VALUE = "value"
_STRUCTURE = frozenset(("func", "sdy", "mpmd"))
"""Dialects whose constants are something else than tensors of a program."""


class UnrollForLoopsPass(NoFields):
    """Replace each loop by copies of its body; the copies know which one they are."""

    name: ClassVar[str] = "mpmd-unroll-for-loops"

    def run(self, program: Program, context: PassContext) -> None:
        """Unroll the loops of all functions.

        Raises:
            UnsupportedError: a loop is in another one, or would be unrolled in part.
        """
        for function in program.functions.values():
            first = 0
            for op in [op for op in function.walk() if op.name == FOR]:
                first += _unroll(op, first, context.semantics)


class FromUnrollToCallCounterPass(NoFields):
    """Make the number of a copy the number of the microbatch of the call in it."""

    name: ClassVar[str] = "mpmd-from-unroll-to-call-counter"

    def run(self, program: Program, context: PassContext) -> None:
        """Rename the counters of all calls."""
        for op in ops_named(program, CALL):
            counter = number_of(op.attributes, UNROLL_COUNTER)
            if counter is not None:
                del op.attributes[UNROLL_COUNTER]
                op.attributes[CALL_COUNTER] = unsigned(counter)


def _unroll(op: Op, first: int, semantics: OpSemantics) -> int:
    """Replace a loop by its copies, numbered from a number on, and return how many there are."""
    iterations, factor = number_of(op.attributes, "iterations") or 0, number_of(op.attributes, "unroll_factor")
    _refuse(op, iterations, factor)
    block, body = op.parent, op.regions[0].block
    assert block is not None
    carried: list[Value] = list(op.operands)
    for number in range(iterations):
        mapping = {argument.id: value for argument, value in zip(body.arguments, carried, strict=False)}
        index = body.arguments[len(carried)] if len(body.arguments) > len(carried) else None
        if index is not None and index.uses:
            constant = block.insert_before(op, _constant(op, index, number, semantics))
            constant.attributes[UNROLL_COUNTER] = unsigned(first + number)
            mapping[index.id] = constant.results[0]
        for inner in body.ops:
            if inner is body.terminator:
                carried = [mapping.get(value.id, value) for value in inner.operands]
                continue
            clone = block.insert_before(op, clone_op(inner, mapping))
            clone.attributes[UNROLL_COUNTER] = unsigned(first + number)
    for value, new in zip(op.results, carried, strict=True):
        value.replace_all_uses_with(new)
    op.erase()
    return iterations


def _refuse(op: Op, iterations: int, factor: int | None) -> None:
    if any(inner.name == FOR for region in op.regions for block in region.blocks for inner in block.walk()):
        message, hint = "a loop is in another one", "unroll the outer loop in the program"
        raise UnsupportedError(Diagnostic("nested-loops", message, op.location, op.name, hint))
    if factor not in (None, iterations):
        message = f"a loop of {iterations} iterations cannot be unrolled by {factor}"
        hint = f"set unroll_factor to {iterations}"
        raise UnsupportedError(Diagnostic("partial-unroll", message, op.location, op.name, hint))


def _constant(op: Op, index: Value, number: int, semantics: OpSemantics) -> Op:
    """Return a constant with the index of an iteration, made by an op of a dialect of the program.

    Raises:
        UnsupportedError: none of its dialects has a constant with a value.
    """
    program = op.program
    attribute = RawAttribute(f"dense<{number}> : {index.type}")
    known = [other.name for other in program.walk() if _VALUE in other.attributes and not other.operands]
    dialects = sorted({name.partition(".")[0] for name in program.op_names} - _STRUCTURE)
    for name in dict.fromkeys([*known, *(f"{dialect}.constant" for dialect in dialects)]):
        constant = Op(program, name, (), [index.type], {_VALUE: attribute})
        if semantics.has_trait(constant, ConstantLike) and name.partition(".")[0] not in _STRUCTURE:
            return constant
    message = "no dialect of the program has an op for the index of the loop"
    hint = "call the iterations one by one, with mpmd.call"
    raise UnsupportedError(Diagnostic("no-constant", message, op.location, op.name, hint))
