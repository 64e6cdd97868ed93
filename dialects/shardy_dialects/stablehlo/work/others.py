"""Sorts, transforms, random bits and linear algebra.

As in XLA's hlo_cost_analysis.cc::HandleSort, HandleFft and HandleCustomCall.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil, floor, log2, prod

from shardy_dialects.stablehlo.definitions import attribute
from shardy_py.ir.graph import Op
from shardy_py.ir.types import TensorType
from shardy_py.plugins import CostOpInterface, OpShapes, OpWork

_PHILOX = 37.25
"""Operations on integers for each 32 random bits: ten rounds of Philox for four words (rng_bit_generator_expander.cc).
"""


class SortCost(CostOpInterface):
    """A sort; what compares is not counted."""

    def get_work(self, op: Op, shapes: OpShapes) -> OpWork:
        """Return n log n operations, n elements being those of the whole first operand."""
        count = prod(shapes.operands[0])
        return OpWork(float(count * ceil(log2(count))) if count > 1 else 0.0)


class FftCost(CostOpInterface):
    """A Fourier transform."""

    def get_work(self, op: Op, shapes: OpShapes) -> OpWork:
        """Return eight operations per element and level."""
        lengths = attribute(op, "fft_length", ())
        levels = prod(floor(log2(size)) for size in lengths if size > 1)
        return OpWork(8.0 * prod(shapes.operands[0]) * levels)


class RandomBitsCost(CostOpInterface):
    """Random bits by counters."""

    def get_work(self, op: Op, shapes: OpShapes) -> OpWork:
        """Return the operations for the words of the last result."""
        type_ = op.results[-1].type
        words = 2 if isinstance(type_, TensorType) and type_.element_type.endswith("64") else 1
        return OpWork(_PHILOX * prod(shapes.results[-1]) * words)


class KernelCost(CostOpInterface):
    """An op that XLA:CPU leaves to a library, whose operations it does not count."""

    def get_work(self, op: Op, shapes: OpShapes) -> OpWork:
        """Return nothing."""
        return OpWork()


COSTS: Mapping[str, CostOpInterface] = {
    "sort": SortCost(),
    "fft": FftCost(),
    "rng_bit_generator": RandomBitsCost(),
    **dict.fromkeys(("triangular_solve", "custom_call", "chlo.top_k"), KernelCost()),
}
