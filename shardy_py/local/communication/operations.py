"""Operations of ops, and the costs that dialects give."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Protocol, runtime_checkable

from shardy_py.ir.graph.program import Op, Value
from shardy_py.ir.graph.types import static_shape
from shardy_py.ir.interfaces.costs import CostOpInterface, OpShapes
from shardy_py.ir.interfaces.ops import OpSemantics
from shardy_py.sharding.rule import OpShardingRule


@runtime_checkable
class _CostSemantics(Protocol):
    def get_cost(self, op: Op) -> CostOpInterface | None: ...


def cost_of(op: Op, semantics: OpSemantics) -> CostOpInterface | None:
    """Return the costs of an op from its dialect; None where the semantics know none."""
    return semantics.get_cost(op) if isinstance(semantics, _CostSemantics) else None


def operations_of(op: Op, rule: OpShardingRule, semantics: OpSemantics) -> float:
    """Return the operations of an unsharded op: one for each point that its factors span, or as its dialect counts.

    Factors leave out the places of windows that overlap. Those of a dilated input, as in the gradient of a convolution
    with large strides, are most of its work: there the dialect counts.

    Args:
        op: The op.
        rule: Its rule.
        semantics: What is known about ops.
    """
    points = float(prod(rule.factor_sizes))
    cost = cost_of(op, semantics)
    if cost is None or all(window.dilation == 1 for window in cost.get_windows(op)):
        return points
    operands, results = _shapes(op.operands), _shapes(op.results)
    if operands is None or results is None:
        return points
    work = cost.get_work(op, OpShapes(operands, results))
    return points if work is None else max(points, work.flops)


def _shapes(values: Sequence[Value]) -> tuple[tuple[int, ...], ...] | None:
    """Return the shapes of values; None where one is not static."""
    shapes = [static_shape(value.type) for value in values]
    static_shapes = tuple(shape for shape in shapes if shape is not None)
    return static_shapes if len(static_shapes) == len(shapes) else None
