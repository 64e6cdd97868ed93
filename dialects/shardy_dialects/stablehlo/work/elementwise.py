"""Elementwise ops: one operation per element; transcendental ones are counted apart.

As in XLA's hlo_cost_analysis.cc::HandleElementwiseOp.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import inf, prod

from shardy_dialects.stablehlo.attributes import parse_enum
from shardy_dialects.stablehlo.definitions import attribute
from shardy_dialects.stablehlo.splats import number_of
from shardy_dialects.stablehlo.work.library import LibraryCost
from shardy_py.ir.graph.program import Block, Op
from shardy_py.ir.graph.types import TensorType
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
class TranscendentalCost(LibraryCost):
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
class ExpandedCost(LibraryCost):
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


EXPANDED: Mapping[str, ExpandedCost] = {
    "chlo.acos": ExpandedCost((3, 2), (197, 9)),
    "chlo.acosh": ExpandedCost((7, 4), (233, 9)),
    "chlo.asin": ExpandedCost((5, 2), (197, 9)),
    "chlo.asinh": ExpandedCost((11, 3), (205, 9)),
    "chlo.atan": ExpandedCost((0, 1), (47, 2)),
    "chlo.atanh": ExpandedCost((6, 2), (45, 2)),
    "chlo.bessel_i1e": ExpandedCost((83, 1), (83, 1)),
    "chlo.cosh": ExpandedCost((3, 2), (33, 8)),
    "chlo.digamma": ExpandedCost((73, 3), (73, 3)),
    "chlo.erf_inv": ExpandedCost((37, 2), (37, 2)),
    "chlo.erfc": ExpandedCost((60, 1), (60, 1)),
    "chlo.is_inf": ExpandedCost((2, 0), (2, 0)),
    "chlo.lgamma": ExpandedCost((52, 4), (52, 4)),
    "chlo.next_after": ExpandedCost((23, 0), (23, 0)),
    "chlo.polygamma": ExpandedCost((254, 19), (254, 19)),
    "chlo.sinh": ExpandedCost((10, 3), (33, 8)),
    "chlo.square": ExpandedCost((1, 0), (14, 0)),
    "chlo.tan": ExpandedCost((0, 1), (0, 1)),
    "chlo.zeta": ExpandedCost((122, 11), (122, 11)),
    "exponential": ExpandedCost((0, 1), (15, 4)),
    "log": ExpandedCost((0, 1), (61, 4)),
    "log_plus_one": ExpandedCost((0, 1), (79, 5)),
    "sqrt": ExpandedCost((0, 1), (98, 7)),
}
"""Expansions for f32 and for pairs of it, as the CPU compiler of jaxlib 0.10.2 counts them on programs of one op."""


@frozen
class NeutralCost(LibraryCost):
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

    def is_expensive(self, op: Op) -> bool:
        """Return whether it divides, as in cpu_instruction_fusion.cc; by the inverse of a broadcast it multiplies."""
        made, type_ = op.operands[1].defining_op, op.results[0].type
        if made is not None and (made.name == "stablehlo.broadcast_in_dim" or number_of(op.operands[1]) is not None):
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
    transcendental = sum(op.name in TRANSCENDENTAL for op in ops)
    return float(len(ops) - transcendental), float(transcendental)


def _is_simplified(op: Op) -> bool:
    """Return whether an op asks if a number is unequal to itself, which only NaN is, or adds the answer for another.

    As in XLA's algebraic_simplifier.cc::HandleCompare; JAX's places of largest numbers ask so for integers, too.
    """
    if op.name == "stablehlo.or":
        return any(value.defining_op is not None and _is_never(value.defining_op) for value in op.operands)
    return _is_never(op)


def _is_never(op: Op) -> bool:
    if op.name != "stablehlo.compare" or op.operands[0] is not op.operands[1]:
        return False
    type_ = op.operands[0].type
    is_integer = isinstance(type_, TensorType) and type_.element_type.startswith(("i", "ui"))
    return is_integer and parse_enum(str(attribute(op, "comparison_direction"))) == "NE"


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


_BROADCASTING: Mapping[str, CostOpInterface] = {
    **dict.fromkeys(("chlo.broadcast_atan2", "chlo.broadcast_power"), TranscendentalCost()),
    **{f"chlo.broadcast_{name}": EXPANDED[f"chlo.{name}"] for name in ("next_after", "polygamma", "zeta")},
}
COSTS: Mapping[str, CostOpInterface] = {
    # One op of HLO, unlike the other ops of CHLO.
    "chlo.erf": TranscendentalCost(),
    "mhlo.erf": TranscendentalCost(),
    **{name.removeprefix("stablehlo."): TranscendentalCost() for name in sorted(TRANSCENDENTAL)},
    **EXPANDED,
    **_BROADCASTING,
    **dict.fromkeys(("cosine", "sine", "tan"), WaveCost()),
    "logistic": TranscendentalCost(_LOGISTIC_FLOPS),
    "add": NeutralCost(0),
    "or": NeutralCost(0),
    "xor": NeutralCost(0),
    "subtract": NeutralCost(0, is_commutative=False),
    "multiply": NeutralCost(1),
    "divide": DivideCost(1, is_commutative=False),
    "maximum": NeutralCost(-inf),
    "minimum": NeutralCost(inf),
    "select": SelectCost(),
    "map": MapCost(),
}
