"""Rules of collectives that a program has already: the devices of their groups are outside of the mesh.

What each process has is sharded further over the mesh, so that such a collective moves as many bytes less.
"""

from __future__ import annotations

from shardy_dialects.aten.arguments import Rule, RuleFunction, operand_shape, tied
from shardy_py.ir.graph.program import Op
from shardy_py.plugins import Dialect

DIALECTS = ("_c10d_functional", "_c10d_functional_autograd")
_BY_LEADING_DIMS = {
    0: ("all_reduce", "broadcast", "wait_tensor", "_wrap_tensor_autograd", "all_reduce_coalesced"),
    1: (
        *("all_gather_into_tensor", "reduce_scatter_tensor", "all_to_all_single"),
        *("all_gather_into_tensor_coalesced", "reduce_scatter_tensor_coalesced"),
    ),
}
"""Number of leading dimensions that are whole, to the collectives: those that move rows have one."""


def _of_tensors(leading: int) -> RuleFunction:
    """Return the rule of collectives of tensors, each of which is sharded by itself but for its leading dimensions."""

    def rule(op: Op) -> Rule:
        return tied(
            op,
            [
                ({number: dim}, {number: dim})
                for number in range(len(op.operands))
                for dim in range(leading, len(operand_shape(op, number)))
            ],
        )

    return rule


def register(dialect: Dialect) -> None:
    """Define the ops of a dialect of collectives."""
    for leading, names in _BY_LEADING_DIMS.items():
        for name in names:
            dialect.op(f"{dialect.name}.{name}.default", rule=_of_tensors(leading))
