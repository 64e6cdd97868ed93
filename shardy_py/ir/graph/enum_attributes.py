"""Enumerated attributes of the ops of sdy: the direction of a barrier, and the combiner of a collective."""

from __future__ import annotations

from shardy_py.ir.graph.attributes import RawAttribute
from shardy_py.ir.graph.program import Op
from shardy_py.ir.interfaces.ops import OpSemantics
from shardy_py.sharding.combiner import Combiner, parse_reduction_op

DIRECTION = "allowed_direction"
"""The attribute of a propagation barrier."""
DIRECTIONS = ("NONE", "FORWARD", "BACKWARD", "BOTH")
"""In the order of upstream's enumeration."""


def direction_code(value: object) -> int | None:
    """Return the number of the direction in an attribute of a propagation barrier, None if it is not a direction.

    >>> direction_code("FORWARD"), direction_code(RawAttribute("2 : i32")), direction_code(4)
    (1, 2, None)
    """
    if isinstance(value, int):
        return value if 0 <= value < len(DIRECTIONS) else None
    text = value.text if isinstance(value, RawAttribute) else value
    if not isinstance(text, str):
        return None
    number = text.partition(":")[0].strip()
    if number.isdecimal():
        return direction_code(int(number))
    return next((code for code, name in enumerate(DIRECTIONS) if name in text), None)


_EXPLICIT = {"max": Combiner.MAX, "min": Combiner.MIN}


def combiner_of_collective(op: Op, semantics: OpSemantics) -> Combiner | None:
    """Return the combiner of an ``sdy.all_reduce`` or an ``sdy.reduce_scatter``.

    The reference writes a sum behind every reduction. Where the operand is the result of an op whose reductions
    combine in another way, that counts.

    Args:
        op: The collective.
        semantics: What is known about ops.

    Returns:
        The combiner; None where partial results cannot be combined.
    """
    explicit = _EXPLICIT.get(parse_reduction_op(op.attributes.get("reduction_op")))
    if explicit is not None:
        return explicit
    defining_op = op.operands[0].defining_op
    combiners = set(semantics.get_reductions(defining_op).combiners.values()) if defining_op is not None else set()
    return combiners.pop() if len(combiners) == 1 else Combiner.ADD
