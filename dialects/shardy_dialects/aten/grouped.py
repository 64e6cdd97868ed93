"""Rules of grouped products: each group of rows meets the matrix of its expert."""

from __future__ import annotations

from typing import Any

from shardy_dialects.aten.arguments import REPLICATED, Factors, operand_number, operand_shape
from shardy_py.ir.graph import Op
from shardy_py.plugins import Contraction, Dialect, Pure
from shardy_py.sharding.rule import FactorKind


def _grouped(op: Op) -> Any:
    """Return the rule of rows times one matrix of several: columns are free, rows and experts stay together."""
    rows, matrices, ends = operand_shape(op, 0), operand_shape(op, 1), operand_number(op, "offs")
    if ends is None or len(op.operands) > ends + 1 or (len(rows), len(matrices)) != (2, 3):
        return None
    factors = Factors(op)
    factors.add(rows[0], {0: 0}, {0: 0}, kind=REPLICATED)
    factors.add(matrices[0], {1: 0, ends: 0}, {}, kind=REPLICATED)
    factors.add(matrices[2], {1: 2}, {0: 1})
    return factors.add(rows[1], {0: 1, 1: 1}, {}, kind=FactorKind.REDUCTION).build()


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
