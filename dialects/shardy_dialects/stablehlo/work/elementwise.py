"""Elementwise ops: one operation per element; transcendental ones are counted apart.

As in XLA's hlo_cost_analysis.cc::HandleElementwiseOp.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from shardy_py.ir.graph import Block, Op
from shardy_py.plugins import CostOpInterface, OpShapes, OpWork
from shardy_py.values import frozen

TRANSCENDENTAL = frozenset(
    f"stablehlo.{name}"
    for name in (
        "atan2",
        "cbrt",
        "cosine",
        "exponential",
        "exponential_minus_one",
        "log",
        "log_plus_one",
        "logistic",
        "power",
        "rsqrt",
        "sine",
        "sqrt",
        "tan",
        "tanh",
    )
)
_LOGISTIC_FLOPS = 3.0
"""XLA expands it to 1 / (1 + exp(-x))."""


@frozen
class TranscendentalCost(CostOpInterface):
    """An elementwise op that counts as transcendental.

    Args:
        flops: The other operations per element.
    """

    flops: float = 0.0

    def get_work(self, op: Op, shapes: OpShapes) -> OpWork:
        """Return one transcendental operation per element."""
        elements = prod(shapes.results[0])
        return OpWork(self.flops * elements, elements)


def body_work(block: Block) -> tuple[float, float]:
    """Return the operations and the transcendental ones of one run of a block of scalars."""
    ops = [op for op in block.ops if op.operands and op.results]
    transcendental = sum(op.name in TRANSCENDENTAL for op in ops)
    return float(len(ops) - transcendental), float(transcendental)


def region_work(op: Op) -> tuple[float, float]:
    """Return the operations and the transcendental ones of one run of the first region of an op."""
    return body_work(op.regions[0].blocks[0]) if op.regions and op.regions[0].blocks else (1.0, 0.0)


class MapCost(CostOpInterface):
    """An op whose region runs once per element."""

    def get_work(self, op: Op, shapes: OpShapes) -> OpWork:
        """Return the work of the region times the elements."""
        elements = prod(shapes.results[0])
        flops, transcendentals = region_work(op)
        return OpWork(flops * elements, transcendentals * elements)


COSTS: Mapping[str, CostOpInterface] = {
    # One op of HLO, unlike the other ops of CHLO.
    "chlo.erf": TranscendentalCost(),
    **{name.removeprefix("stablehlo."): TranscendentalCost() for name in sorted(TRANSCENDENTAL)},
    "logistic": TranscendentalCost(_LOGISTIC_FLOPS),
    "map": MapCost(),
}
