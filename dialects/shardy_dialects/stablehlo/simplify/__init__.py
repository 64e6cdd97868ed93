"""A pass: ops that hand on an operand, fold into a constant, or are another op in a simpler form.

Mirrors stablehlo's StablehloAggressiveSimplification.cpp and StablehloAggressiveFolder.cpp, as far as no constant
grows.
"""

from __future__ import annotations

from typing import ClassVar

from shardy_py.ir.graph.dead_ops import erase_dead_ops
from shardy_py.ir.graph.program import Op, Program
from shardy_py.ir.graph.rule_attributes import RULE_ATTRIBUTE
from shardy_py.plugins import PassContext
from shardy_py.values import NoFields

_PREFIX = "stablehlo."
_MOST_ROUNDS = 20


class SimplifyPass(NoFields):
    """Simplify ops until nothing changes; before meshes are inferred, as each op that stays needs one."""

    name: ClassVar[str] = "stablehlo-simplify"
    runs_after: ClassVar[str] = "mpmd-simplify-ops"

    def run(self, program: Program, context: PassContext) -> None:
        """Visit all ops in order, again and again, as long as some become simpler."""
        for _ in range(_MOST_ROUNDS):
            changed = [op for op in list(program.walk()) if op.name.startswith(_PREFIX) and _simplify(op)]
            if not changed:
                break
            erase_dead_ops(program, context.semantics)


def _simplify(op: Op) -> bool:
    """Replace an op with one result by a simpler one; return whether there is one."""
    # Programs on several meshes are simplified, and others do without these tables.
    from shardy_dialects.stablehlo.simplify.forwarding import FORWARDING
    from shardy_dialects.stablehlo.simplify.shapes import SHAPES
    from shardy_dialects.stablehlo.simplify.splats import fold_splat

    if op.parent is None or len(op.results) != 1 or not op.result.uses:
        return False
    if RULE_ATTRIBUTE in op.attributes:
        # The rule is about this op, its operands and its result.
        return False
    value = fold_splat(op)
    for table in (FORWARDING, SHAPES):
        if value is None and op.name in table:
            value = table[op.name](op)
    if value is None or value.type != op.result.type:
        return False
    shardings = op.program.shardings
    sharding = shardings.get(op.result.id)
    if sharding is not None and shardings.get(value.id) != sharding:
        # It is that of this op only: not of an argument, nor of what others use, too.
        if value.id in shardings or value.defining_op is None or any(user is not op for user, _ in value.uses):
            return False
        shardings[value.id] = sharding
    op.result.replace_all_uses_with(value)
    return True
