"""The combiner of a collective, which its text does not always tell."""

from __future__ import annotations

from shardy_py.ir.graph.program import Op
from shardy_py.ir.interfaces.ops import OpSemantics
from shardy_py.sharding.combiner import Combiner
from shardy_py.sharding.reduction_ops import parse_reduction_op

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
    found = _EXPLICIT.get(parse_reduction_op(op.attributes.get("reduction_op")))
    if found is not None:
        return found
    made = op.operands[0].defining_op
    combiners = set(semantics.get_reductions(made).combiners.values()) if made is not None else set()
    return combiners.pop() if len(combiners) == 1 else Combiner.ADD
