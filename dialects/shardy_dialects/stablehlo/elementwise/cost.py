"""Elementwise ops: one operation per element; transcendental ones are counted apart.

As in XLA's hlo_cost_analysis.cc::HandleElementwiseOp.
"""

from __future__ import annotations

from math import prod

from shardy_dialects.stablehlo.attributes import case_of
from shardy_dialects.stablehlo.costs import LibraryCost, MovingCost, element_types, has_many_elements
from shardy_dialects.stablehlo.elementwise.ops import COMPARE, OPS, OR
from shardy_dialects.stablehlo.shape import BROADCAST
from shardy_dialects.stablehlo.splats import number_of
from shardy_py.ir.graph.program import Block, Op
from shardy_py.ir.graph.types import TensorType
from shardy_py.plugins import CostOpInterface, OpShapes, OpWork
from shardy_py.values import frozen


class ElementCost(LibraryCost):
    """An elementwise op that the library may compute."""

    def _is_in_library(self, op: Op, shapes: OpShapes) -> bool:
        if op.name not in _IN_LIBRARY or not has_many_elements(shapes):
            return False
        return element_types(op) <= {"f32", "f64", "bf16"}


@frozen
class TranscendentalCost(ElementCost):
    """An elementwise op that counts as transcendental.

    Args:
        flops: The other operations per element.
    """

    flops: float = 0.0

    def get_work(self, op: Op, shapes: OpShapes) -> OpWork:
        """Return one transcendental operation per element."""
        elements = prod(shapes.results[0])
        return OpWork(self.flops * elements, elements)


@frozen
class ExpandedCost(ElementCost):
    """An elementwise op that XLA expands into others before it counts.

    Args:
        real: The operations per element, and the transcendental ones.
        imaginary: The same for complex elements.
    """

    real: tuple[int, int]
    imaginary: tuple[int, int]

    def get_work(self, op: Op, shapes: OpShapes) -> OpWork:
        """Return the work of the expansion for each element."""
        type_ = op.operands[0].type
        is_complex = isinstance(type_, TensorType) and type_.element_type.startswith("complex")
        flops, transcendentals = self.imaginary if is_complex else self.real
        elements = prod(shapes.results[0])
        return OpWork(float(flops * elements), float(transcendentals * elements))


@frozen
class NeutralCost(ElementCost):
    """An elementwise op of two operands that gives one of them where the other one is neutral.

    Args:
        neutral: The neutral number.
        is_commutative: Whether it is neutral as the first operand, too.
    """

    neutral: float
    is_commutative: bool = True

    def get_work(self, op: Op, shapes: OpShapes) -> OpWork:
        """Return one operation per element."""
        return OpWork(float(prod(shapes.results[0])))

    def get_equal_operand(self, op: Op) -> int | None:
        """Return the operand beside a neutral constant."""
        left, right = op.operands
        if number_of(right) == self.neutral:
            return 0
        return 1 if self.is_commutative and number_of(left) == self.neutral else None


class DivideCost(NeutralCost):
    """A division, by 1 the dividend."""

    def get_library_operands(self, op: Op, shapes: OpShapes) -> tuple[int, ...] | None:
        """Return all operands but the divisor that is inverted before it is broadcast, where the library divides."""
        if not self._is_in_library(op, shapes):
            return None
        divisor = op.operands[1].defining_op
        return (0,) if divisor is not None and divisor.name == BROADCAST else (0, 1)

    def is_expensive(self, op: Op) -> bool:
        """Return whether it divides, as in cpu_instruction_fusion.cc; by the inverse of a broadcast it multiplies."""
        producer, type_ = op.operands[1].defining_op, op.results[0].type
        if producer is not None and (producer.name == BROADCAST or number_of(op.operands[1]) is not None):
            return False
        return isinstance(type_, TensorType) and not type_.element_type.startswith(("i", "ui"))


class WaveCost(TranscendentalCost):
    """A sine, a cosine or a tangent."""

    def is_expensive(self, op: Op) -> bool:
        """Return whether numbers are complex: those of others are computed again, as in cpu_instruction_fusion.cc."""
        type_ = op.results[0].type
        return isinstance(type_, TensorType) and type_.element_type.startswith("complex")


class SelectCost(CostOpInterface):
    """A choice between two tensors."""

    def get_work(self, op: Op, shapes: OpShapes) -> OpWork:
        """Return one operation per element."""
        return OpWork(float(prod(shapes.results[0])))

    def get_choices(self, op: Op) -> tuple[int, int]:
        """Return both tensors."""
        return 1, 2

    def get_equal_operand(self, op: Op) -> int | None:
        """Return the tensor that is chosen either way."""
        return 1 if op.operands[1] is op.operands[2] else None


def body_work(block: Block) -> tuple[float, float]:
    """Return the operations and the transcendental ones of one run of a block of scalars."""
    ops = [op for op in block.ops if op.operands and op.results and not _is_simplified(op)]
    transcendental = sum(op.name in _TRANSCENDENTAL for op in ops)
    return float(len(ops) - transcendental), float(transcendental)


def _is_simplified(op: Op) -> bool:
    """Return whether an op asks if a number is unequal to itself, which only NaN is, or adds the answer for another.

    As in XLA's algebraic_simplifier.cc::HandleCompare; JAX's places of largest numbers ask so for integers, too.
    """
    if op.name == OR:
        return any(value.defining_op is not None and _is_never(value.defining_op) for value in op.operands)
    return _is_never(op)


def _is_never(op: Op) -> bool:
    if op.name != COMPARE or op.operands[0] is not op.operands[1]:
        return False
    type_ = op.operands[0].type
    is_integer = isinstance(type_, TensorType) and type_.element_type.startswith(("i", "ui"))
    return is_integer and case_of(op, "comparison_direction") == "NE"


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


_SPLIT, _JOIN = 6, 5
"""Operations per part of a word."""


class BitcastCost(MovingCost):
    """The same bits as elements of another type: XLA shifts words into parts, and parts into words.

    As in XLA's bitcast_dtypes_expander.cc.
    """

    def get_work(self, op: Op, shapes: OpShapes) -> OpWork:
        """Return the operations that split or join words, for each part; none for parts of the same width."""
        source_elements, target_elements = prod(shapes.operands[0]), prod(shapes.results[0])
        return OpWork(
            float(
                _SPLIT * target_elements
                if target_elements > source_elements
                else _JOIN * source_elements
                if target_elements < source_elements
                else 0
            )
        )


_IN_LIBRARY = frozenset(entry.name for entry in OPS if entry.in_library)
_COSTS = {entry.name: entry.cost() for entry in OPS if entry.cost is not None}
_TRANSCENDENTAL = frozenset(
    name for name, cost in _COSTS.items() if isinstance(cost, (TranscendentalCost, ExpandedCost))
)
