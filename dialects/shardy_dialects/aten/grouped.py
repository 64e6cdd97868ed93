"""Rules of grouped products: each group of rows meets the matrix of its expert."""

from __future__ import annotations

from typing import Any

from shardy_dialects.aten.arguments import REPLICATED, Factors, Tie, operand_number, operand_shape, tied
from shardy_py.ir.graph.program import Op
from shardy_py.plugins import Contraction, Dialect, Pure
from shardy_py.sharding.rule import FactorKind

_REDUCED = FactorKind.REDUCTION


def _grouped(op: Op) -> Any:
    """Return the rule of rows times one matrix of several: columns are free, rows and experts stay together.

    The groups may also be of the columns, or of what is summed up, as in the gradient of the matrices; without groups
    it is a product of as many matrices.
    """
    rows, matrices, ends = operand_shape(op, 0), operand_shape(op, 1), operand_number(op, "offs")
    if operand_number(op, "bias") is not None:
        return None
    if ends is None:
        return tied(op, [({0: 0, 1: 0}, {0: 0}), ({0: 1}, {0: 1}), ({1: 2}, {0: 2}), ({0: 2, 1: 1}, {}, _REDUCED)])
    if (len(rows), len(matrices)) == (2, 2):
        sums: Tie = ({0: 1, 1: 0}, {}, REPLICATED)
        return tied(op, [({0: 0}, {0: 1}), ({1: 1}, {0: 2}), sums, ({ends: 0}, {0: 0}, REPLICATED)])
    if (len(rows), len(matrices)) == (3, 2):
        groups: Tie = ({0: 0, ends: 0}, {}, REPLICATED)
        return tied(op, [({0: 1}, {0: 0}), ({1: 1}, {0: 1}, REPLICATED), ({0: 2, 1: 0}, {}, _REDUCED), groups])
    if (len(rows), len(matrices)) != (2, 3):
        return None
    factors = Factors(op)
    factors.add(rows[0], {0: 0}, {0: 0}, kind=REPLICATED)
    factors.add(matrices[0], {1: 0, ends: 0}, {}, kind=REPLICATED)
    factors.add(matrices[2], {1: 2}, {0: 1})
    return factors.add(rows[1], {0: 1, 1: 1}, {}, kind=_REDUCED).build()


def _grouped_backward(op: Op) -> Any:
    """Return the rule of its gradients: the dimension that was contracted is free in both."""
    rows, matrices = operand_shape(op, 0), operand_shape(op, 1)
    ends, grad = operand_number(op, "offs"), operand_number(op, "grad_output")
    if ends is None or grad is None or (len(rows), len(matrices)) != (2, 3):
        return None
    factors = Factors(op)
    factors.add(rows[0], {0: 0, grad: 0}, {0: 0}, kind=REPLICATED)
    factors.add(matrices[0], {1: 0, ends: 0}, {1: 0}, kind=REPLICATED)
    factors.add(rows[1], {0: 1, 1: 1}, {0: 1, 1: 1})
    return factors.add(matrices[2], {1: 2, grad: 1}, {1: 2}, kind=REPLICATED).build()


def register(aten: Dialect) -> None:
    """Define the op of PyTorch."""
    aten.op("aten._grouped_mm.default", traits=[Pure, Contraction], rule=_grouped)


def register_transformers(transformers: Dialect) -> None:
    """Define the op that the library transformers has for devices without that of PyTorch, and its gradients."""
    transformers.op("transformers.grouped_mm_fallback.default", traits=[Pure, Contraction], rule=_grouped)
    transformers.op("transformers.grouped_mm_fallback_backward.default", traits=[Pure], rule=_grouped_backward)
