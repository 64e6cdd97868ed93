"""Turn sharding constraints into reshards: once all shardings are known, a constraint is a change of sharding.

Mirrors sharding_constraint_to_reshard.cc::ShardingConstraintToReshardPass.
"""

from __future__ import annotations

from typing import ClassVar

from shardy_py.ir.graph.op_names import CONSTRAINT, RESHARD
from shardy_py.ir.graph.program import Op, Program
from shardy_py.ir.graph.rule_attributes import hand_over_rule
from shardy_py.ir.graph.walk import ops_named
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.values import NoFields


class ShardingConstraintToReshardPass(NoFields):
    """Replace every ``sdy.sharding_constraint`` by an ``sdy.reshard`` with the same attributes."""

    name: ClassVar[str] = "sdy-sharding-constraint-to-reshard"

    def run(self, program: Program, context: PassContext) -> None:
        """Replace the constraints of all functions."""
        for op in ops_named(program, CONSTRAINT):
            _replace(program, op)


def _replace(program: Program, op: Op) -> None:
    reshard = Op(program, RESHARD, op.operands, [op.results[0].type], dict(op.attributes))
    hand_over_rule(op, reshard)
    if op.parent is not None:
        op.parent.insert_before(op, reshard)
    op.results[0].replace_all_uses_with(reshard.results[0])
    sharding = program.shardings.pop(op.results[0].id, None)
    if sharding is not None:
        program.shardings[reshard.results[0].id] = sharding
    op.erase()
