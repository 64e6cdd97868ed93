"""Turn what changes a sharding into sharding constraints, which XLA's importer knows."""

from __future__ import annotations

from typing import ClassVar

from shardy_py.ir.graph.op_names import CONSTRAINT
from shardy_py.ir.graph.program import Op, Program
from shardy_py.ir.graph.walk import ops_named
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.jax.form.constrain_values import closed
from shardy_py.transforms.exported_ops import RESHARDS
from shardy_py.values import frozen


@frozen
class ReshardsToConstraintsPass:
    """Replace every reshard and every collective of Shardy by a closed constraint: XLA's partitioner makes its own."""

    name: ClassVar[str] = "xla-reshards-to-constraints"

    def run(self, program: Program, context: PassContext) -> None:
        """Replace the ops of all functions."""
        for op in ops_named(program, *RESHARDS):
            _replace(program, op)


def _replace(program: Program, op: Op) -> None:
    sharding = closed(op.attributes[RESHARDS[op.name]])
    constraint = Op(program, CONSTRAINT, op.operands, [op.results[0].type], {"sharding": sharding})
    if op.parent is not None:
        op.parent.insert_before(op, constraint)
    op.results[0].replace_all_uses_with(constraint.results[0])
    program.shardings[constraint.results[0].id] = sharding
    op.erase()
