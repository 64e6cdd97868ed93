"""Bodies on padding: does an iteration whose inputs are neutral values change nothing?"""

from __future__ import annotations

from collections.abc import Collection

from shardy_dialects.linalg.bodies import Body
from shardy_dialects.linalg.loops import Loops
from shardy_py.ir.graph.program import Op, Value
from shardy_py.sharding.combiner import Combiner

_KEEP_ALL = frozenset(("arith.extf", "arith.truncf"))
_KEEP_ZERO = _KEEP_ALL | frozenset(
    (
        *("arith.extsi", "arith.extui", "arith.trunci", "arith.negf", "arith.sitofp", "arith.uitofp"),
        *("arith.addf", "arith.addi", "arith.subf", "arith.subi", "arith.mulf", "arith.muli"),
        *("math.absf", "math.absi", "math.asin", "math.asinh", "math.atan", "math.atanh", "math.cbrt", "math.ceil"),
        *("math.erf", "math.expm1", "math.floor", "math.log1p", "math.round", "math.roundeven", "math.sin"),
        *("math.sinh", "math.sqrt", "math.tan", "math.tanh", "math.trunc"),
    )
)
"""Ops that give zero where all their operands are zero."""
_WITHOUT_ZERO_POINTS = ("quantized_", "_q")


def keeps_neutral(op: Op, body: Body | None, loops: Loops, masked: Collection[int]) -> bool:
    """Return whether iterations over padding change nothing, when the padding holds neutral values.

    A sum of squares sees zeros there and adds zeros. A sum of exponentials would add ones.

    Args:
        op: The structured op.
        body: Its body; without one it is the product of its inputs, or the only input.
        loops: Its loops.
        masked: The numbers of the inputs whose padding holds the neutral value.
    """
    inputs = len(op.operands) - len(op.results)
    if body is None:
        has_zero_points = any(text in op.name for text in _WITHOUT_ZERO_POINTS)
        return not has_zero_points and all(number in masked for number in range(inputs) if loops.maps[number].results)
    arguments = {body.block.arguments[number].id for number in masked if number < inputs}
    keeps = _keeps_zero if loops.combiner is Combiner.ADD else _keeps_all
    return all(keeps(value, body, arguments) for value in body.contributions)


def _keeps_zero(value: Value, body: Body, masked: Collection[int]) -> bool:
    """Return whether a value of a body is zero where the masked inputs are."""
    made = value.defining_op
    if made is None or made.parent is not body.block:
        return value.id in masked
    return made.name in _KEEP_ZERO and all(_keeps_zero(operand, body, masked) for operand in made.operands)


def _keeps_all(value: Value, body: Body, masked: Collection[int]) -> bool:
    """Return whether a value of a body is a masked input, up to its precision."""
    made = value.defining_op
    if made is None or made.parent is not body.block:
        return value.id in masked
    return made.name in _KEEP_ALL and _keeps_all(made.operands[0], body, masked)
