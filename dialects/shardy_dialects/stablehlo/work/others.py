"""Sorts, transforms, random bits and calls.

As in XLA's hlo_cost_analysis.cc::HandleSort, HandleFft and HandleCustomCall.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil, floor, log2, prod

from shardy_dialects.stablehlo.custom_calls import APPROXIMATE_TOP_K
from shardy_dialects.stablehlo.definitions import attribute
from shardy_dialects.stablehlo.work.solvers import call_work
from shardy_py.ir.graph.program import Op
from shardy_py.ir.graph.types import TensorType
from shardy_py.plugins import CostOpInterface, OpShapes, OpWork
from shardy_py.sharding.rule_builder import tensor_shape

_PHILOX = 37.25
"""Operations on integers for each 32 random bits: ten rounds of Philox for four words (rng_bit_generator_expander.cc).
"""

_UNIFORM = "UNIFORM"
_UNIFORM_FLOPS = 3.0
"""A shift, a conversion and a product make a number of bits."""


class SortCost(CostOpInterface):
    """A sort; what compares is not counted."""

    def get_work(self, op: Op, shapes: OpShapes) -> OpWork:
        """Return n log n operations, n elements being those of the whole first operand."""
        count = prod(shapes.operands[0])
        return OpWork(float(count * ceil(log2(count))) if count > 1 else 0.0)


class CustomCallCost(CostOpInterface):
    """A call of a library, whose operations XLA does not count, or of what XLA expands."""

    def get_work(self, op: Op, shapes: OpShapes) -> OpWork:
        """Return the operations of a decomposition or, for an approximate top-k, of a sort; none for others."""
        if attribute(op, "call_target_name") == APPROXIMATE_TOP_K:
            return SortCost().get_work(op, shapes)
        return call_work(op, shapes) or OpWork()

    def is_repeated(self, op: Op) -> bool:
        """Return whether the call is one of LAPACK: jaxlib 0.10.2 keeps equal ones apart."""
        return str(attribute(op, "call_target_name", "")).startswith("lapack_")


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


class RandomCost(CostOpInterface):
    """Random numbers between two bounds, made of random bits (rng_expander.cc)."""

    def get_work(self, op: Op, shapes: OpShapes) -> OpWork | None:
        """Return the operations for uniform numbers; None for others.

        Where all devices have the same numbers, one of them makes these, and all sum what they have.
        """
        if _UNIFORM not in str(attribute(op, "rng_distribution", "")):
            return None
        elements = prod(shapes.results[0])
        is_sent = shapes.results[0] == tensor_shape(op.results[0])
        return OpWork((_PHILOX + _UNIFORM_FLOPS + is_sent) * elements)


class KernelCost(CostOpInterface):
    """An op that XLA:CPU leaves to a library, whose operations it does not count."""

    def get_work(self, op: Op, shapes: OpShapes) -> OpWork:
        """Return nothing."""
        return OpWork()


COSTS: Mapping[str, CostOpInterface] = {
    "sort": SortCost(),
    "custom_call": CustomCallCost(),
    "fft": FftCost(),
    "rng": RandomCost(),
    "rng_bit_generator": RandomBitsCost(),
    "chlo.top_k": KernelCost(),
    "mhlo.topk": KernelCost(),
}
