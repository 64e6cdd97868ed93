"""Rules of collectives that a program has already: the devices of their groups are outside of the mesh.

What each process has is sharded further over the mesh, so that such a collective moves as many bytes less.
"""

from __future__ import annotations

from shardy_dialects.aten.arguments import Rule, Tie, operand_shape, tied
from shardy_py.ir.graph.program import Op
from shardy_py.plugins import Dialect
from shardy_py.sharding import rules

DIALECTS = ("_c10d_functional", "_c10d_functional_autograd")
_ELEMENTS = ("all_reduce", "broadcast", "wait_tensor", "_wrap_tensor_autograd")
_ROWS = ("all_gather_into_tensor", "reduce_scatter_tensor", "all_to_all_single")
_LISTS = {"all_reduce": 0, "all_gather_into_tensor": 1, "reduce_scatter_tensor": 1}
"""Collectives of several tensors to how many leading dimensions are whole."""


def _rows(op: Op) -> Rule:
    """Return the rule of collectives along the first dimension, which is whole."""
    return tied(op, [({0: dim}, {0: dim}) for dim in range(1, len(operand_shape(op, 0)))])


def _each(op: Op) -> Rule:
    """Return the rule of a collective of several tensors, each of which is sharded by itself."""
    first = _LISTS[op.name.split(".")[1].removesuffix("_coalesced")]
    ties: list[Tie] = [
        ({number: dim}, {number: dim})
        for number in range(len(op.operands))
        for dim in range(first, len(operand_shape(op, number)))
    ]
    return tied(op, ties)


def register(dialect: Dialect) -> None:
    """Define the ops of a dialect of collectives."""
    by_rule = {rules.elementwise: _ELEMENTS, _rows: _ROWS, _each: tuple(f"{name}_coalesced" for name in _LISTS)}
    for rule, names in by_rule.items():
        for name in names:
            dialect.op(f"{dialect.name}.{name}.default", rule=rule)
