"""The table of the elementwise ops: one entry gives the name, the traits, the scalar body and the cost of an op."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from math import inf
from typing import TYPE_CHECKING

from attrs import field

from shardy_dialects.stablehlo.definitions import LazyFacets
from shardy_py.plugins import CostOpInterface, Maximum, Minimum, Product, Sum, Trait
from shardy_py.sharding.combiner import Combiner
from shardy_py.values import frozen

if TYPE_CHECKING:
    from shardy_dialects.stablehlo.definitions import Body

FACETS = LazyFacets("shardy_dialects.stablehlo.elementwise")
Cost = Callable[[], CostOpInterface]


@frozen
class ElementwiseOp:
    """One elementwise op.

    Args:
        name: Its full name.
        body: Its scalar body.
        cost: A function that makes its cost; by default one operation per element.
        traits: Traits besides those of all elementwise ops.
        in_library: Whether YNNPACK, the library of XLA:CPU, computes it with the reductions around it.
        combiner: The combiner of reductions by the op.
        on_integers: Its value for integers of Python.
    """

    name: str
    body: Body | None = None
    cost: Cost | None = None
    traits: Iterable[Trait] = field(default=(), kw_only=True)
    in_library: bool = field(default=False, kw_only=True)
    combiner: Combiner | None = field(default=None, kw_only=True)
    on_integers: Callable[[int, int], int] | None = field(default=None, kw_only=True)


def _arithmetic(name: str, *arguments: object, **keywords: object) -> Body:
    """Return a body of the module of arithmetic."""
    return FACETS.body(name, *arguments, module="arithmetic", **keywords)


def _by_type(floats: str, signed: str, **others: str) -> Body:
    """Return the body that is one op for each kind of elements."""
    return _arithmetic("by_type", floats, signed, **others)


def _function(name: str, *, complex_: str = "", keeps_halves: bool = False) -> Body:
    """Return the body that is a function of ``math``."""
    return FACETS.body("function", name, module="functions", complex_=complex_, keeps_halves=keeps_halves)


def _written_body(name: str, *arguments: object, module: str = "functions", **keywords: object) -> Body:
    """Return a body that a function of the module builds for the op."""
    return FACETS.body(name, *arguments, module=module, **keywords)


def _special(name: str) -> Body:
    """Return the body that is a special function."""
    return FACETS.body("special", name, module="special_functions")


def _neutral(number: float, *, is_commutative: bool = True) -> Cost:
    """Return the cost of an op that gives an operand where the other one is neutral."""
    return FACETS.cost("NeutralCost", number, is_commutative)


def _expanded(real: tuple[int, int], imaginary: tuple[int, int] | None = None) -> Cost:
    """Return the cost of an op that XLA expands: operations and transcendental ones of real and complex elements."""
    return FACETS.cost("ExpandedCost", real, real if imaginary is None else imaginary)


_TRANSCENDENTAL, _WAVE = FACETS.cost("TranscendentalCost"), FACETS.cost("WaveCost")

OPS = (
    ElementwiseOp("stablehlo.abs", _arithmetic("absolute"), in_library=True),
    ElementwiseOp(
        "stablehlo.add",
        _by_type("arith.addf", "arith.addi", boolean="arith.ori", complex_="complex.add"),
        _neutral(0),
        traits=(Sum,),
        in_library=True,
        combiner=Combiner.ADD,
        on_integers=operator.add,
    ),
    ElementwiseOp("stablehlo.and", _by_type("", "arith.andi"), combiner=Combiner.AND, on_integers=operator.and_),
    ElementwiseOp("stablehlo.atan2", _function("math.atan2", complex_="complex.atan2"), _TRANSCENDENTAL),
    ElementwiseOp("stablehlo.cbrt", _written_body("cube_root"), _TRANSCENDENTAL),
    ElementwiseOp("stablehlo.ceil", _function("math.ceil"), in_library=True),
    ElementwiseOp("stablehlo.clamp", _arithmetic("clamp")),
    ElementwiseOp("stablehlo.compare", _arithmetic("compare")),
    ElementwiseOp("stablehlo.complex", _written_body("complex_", module="conversion")),
    ElementwiseOp("stablehlo.convert", _written_body("convert", module="conversion"), in_library=True),
    ElementwiseOp("stablehlo.cosine", _function("math.cos", complex_="complex.cos"), _WAVE, in_library=True),
    ElementwiseOp("stablehlo.count_leading_zeros", _written_body("count", "math.ctlz")),
    ElementwiseOp(
        "stablehlo.divide",
        _arithmetic("divide"),
        FACETS.cost("DivideCost", 1, False),
        in_library=True,
    ),
    ElementwiseOp(
        "stablehlo.exponential",
        _function("math.exp", complex_="complex.exp", keeps_halves=True),
        _expanded((0, 1), (15, 4)),
        in_library=True,
    ),
    ElementwiseOp(
        "stablehlo.exponential_minus_one",
        _function("math.expm1", complex_="complex.expm1"),
        _TRANSCENDENTAL,
        in_library=True,
    ),
    ElementwiseOp("stablehlo.floor", _function("math.floor"), in_library=True),
    ElementwiseOp("stablehlo.imag", _written_body("part", "im", module="conversion")),
    ElementwiseOp("stablehlo.is_finite", _written_body("is_finite")),
    ElementwiseOp(
        "stablehlo.log",
        _function("math.log", complex_="complex.log", keeps_halves=True),
        _expanded((0, 1), (61, 4)),
        in_library=True,
    ),
    ElementwiseOp(
        "stablehlo.log_plus_one",
        _function("math.log1p", complex_="complex.log1p"),
        _expanded((0, 1), (79, 5)),
        in_library=True,
    ),
    # XLA expands it to 1 / (1 + exp(-x)).
    ElementwiseOp(
        "stablehlo.logistic", _written_body("logistic"), FACETS.cost("TranscendentalCost", 3.0), in_library=True
    ),
    ElementwiseOp(
        "stablehlo.maximum",
        _by_type("arith.maximumf", "arith.maxsi", unsigned="arith.maxui", boolean="arith.ori"),
        _neutral(-inf),
        traits=(Maximum,),
        in_library=True,
        combiner=Combiner.MAX,
        on_integers=max,
    ),
    ElementwiseOp(
        "stablehlo.minimum",
        _by_type("arith.minimumf", "arith.minsi", unsigned="arith.minui", boolean="arith.andi"),
        _neutral(inf),
        traits=(Minimum,),
        in_library=True,
        combiner=Combiner.MIN,
        on_integers=min,
    ),
    ElementwiseOp(
        "stablehlo.multiply",
        _by_type("arith.mulf", "arith.muli", boolean="arith.andi", complex_="complex.mul"),
        _neutral(1),
        traits=(Product,),
        in_library=True,
        combiner=Combiner.MUL,
        on_integers=operator.mul,
    ),
    ElementwiseOp("stablehlo.negate", _arithmetic("negate"), in_library=True),
    ElementwiseOp("stablehlo.not", _arithmetic("invert")),
    ElementwiseOp(
        "stablehlo.or", _by_type("", "arith.ori"), _neutral(0), combiner=Combiner.OR, on_integers=operator.or_
    ),
    ElementwiseOp("stablehlo.popcnt", _written_body("count", "math.ctpop")),
    ElementwiseOp("stablehlo.power", _written_body("power"), _TRANSCENDENTAL, in_library=True),
    ElementwiseOp("stablehlo.real", _written_body("part", "re", module="conversion")),
    ElementwiseOp("stablehlo.reduce_precision", _written_body("reduce_precision", module="conversion")),
    ElementwiseOp("stablehlo.remainder", _arithmetic("remainder")),
    ElementwiseOp("stablehlo.round_nearest_afz", _function("math.round")),
    ElementwiseOp("stablehlo.round_nearest_even", _function("math.roundeven"), in_library=True),
    ElementwiseOp(
        "stablehlo.rsqrt", _function("math.rsqrt", complex_="complex.rsqrt"), _TRANSCENDENTAL, in_library=True
    ),
    ElementwiseOp("stablehlo.select", _arithmetic("select"), FACETS.cost("SelectCost")),
    ElementwiseOp("stablehlo.shift_left", _arithmetic("shift", "arith.shli")),
    ElementwiseOp("stablehlo.shift_right_arithmetic", _arithmetic("shift", "arith.shrsi")),
    ElementwiseOp("stablehlo.shift_right_logical", _arithmetic("shift", "arith.shrui")),
    ElementwiseOp("stablehlo.sign", _arithmetic("sign"), in_library=True),
    ElementwiseOp("stablehlo.sine", _function("math.sin", complex_="complex.sin"), _WAVE, in_library=True),
    ElementwiseOp(
        "stablehlo.sqrt",
        _function("math.sqrt", complex_="complex.sqrt"),
        _expanded((0, 1), (98, 7)),
        in_library=True,
    ),
    ElementwiseOp(
        "stablehlo.subtract",
        _by_type("arith.subf", "arith.subi", complex_="complex.sub"),
        _neutral(0, is_commutative=False),
        in_library=True,
        on_integers=operator.sub,
    ),
    ElementwiseOp("stablehlo.tan", _function("math.tan", complex_="complex.tan"), _WAVE, in_library=True),
    ElementwiseOp("stablehlo.tanh", _function("math.tanh", complex_="complex.tanh"), _TRANSCENDENTAL, in_library=True),
    ElementwiseOp("stablehlo.xor", _by_type("", "arith.xori"), _neutral(0)),
)
"""The ops of StableHLO whose tensors have one shape; predicates and bounds may be scalars.

Work of expansions is that for f32 and for pairs of it, as the CPU compiler of jaxlib 0.10.2 counts them on programs of
one op.
"""

CLIENT_OPS = (
    ElementwiseOp("chlo._asin_acos_kernel"),
    ElementwiseOp("chlo.acos", _function("math.acos"), _expanded((3, 2), (197, 9))),
    ElementwiseOp("chlo.acosh", _function("math.acosh"), _expanded((7, 4), (233, 9))),
    ElementwiseOp("chlo.asin", _function("math.asin"), _expanded((5, 2), (197, 9))),
    ElementwiseOp("chlo.asinh", _function("math.asinh"), _expanded((11, 3), (205, 9))),
    ElementwiseOp("chlo.atan", _function("math.atan"), _expanded((0, 1), (47, 2))),
    ElementwiseOp("chlo.atanh", _function("math.atanh"), _expanded((6, 2), (45, 2))),
    ElementwiseOp("chlo.bessel_i1e", _special("bessel_i1e"), _expanded((83, 1))),
    ElementwiseOp("chlo.conj", _written_body("conjugate", module="special_functions")),
    ElementwiseOp("chlo.cosh", _function("math.cosh"), _expanded((3, 2), (33, 8))),
    ElementwiseOp("chlo.digamma", _special("digamma"), _expanded((73, 3))),
    # One op of HLO, unlike the other ops of CHLO.
    ElementwiseOp("chlo.erf", _function("math.erf"), _TRANSCENDENTAL),
    ElementwiseOp("chlo.erf_inv", _special("erf_inv"), _expanded((37, 2))),
    ElementwiseOp("chlo.erfc", _special("erfc"), _expanded((60, 1))),
    ElementwiseOp("chlo.is_inf", _written_body("is_infinite", inf, of_magnitude=True), _expanded((2, 0))),
    ElementwiseOp("chlo.is_neg_inf", _written_body("is_infinite", -inf)),
    ElementwiseOp("chlo.is_pos_inf", _written_body("is_infinite", inf)),
    ElementwiseOp("chlo.lgamma", _special("lgamma"), _expanded((52, 4))),
    ElementwiseOp("chlo.sinh", _function("math.sinh"), _expanded((10, 3), (33, 8))),
    ElementwiseOp("chlo.square", _written_body("square"), _expanded((1, 0), (14, 0))),
    ElementwiseOp("chlo.tan", _function("math.tan", complex_="complex.tan"), _expanded((0, 1), (0, 1))),
)
"""The ops of CHLO of one operand."""

CLIENT_OPS_OF_TWO = (
    ElementwiseOp("chlo.mulhi", _written_body("multiply_high", module="special_functions")),
    ElementwiseOp("chlo.next_after", _written_body("next_after", module="special_functions"), _expanded((23, 0))),
    ElementwiseOp("chlo.polygamma", _special("polygamma"), _expanded((254, 19))),
    ElementwiseOp("chlo.zeta", _special("zeta"), _expanded((122, 11))),
)
"""Those of two operands, which the dialect does not mark as elementwise, so that the schedule does not prefer them."""

BROADCASTING = (
    *("add", "and", "atan2", "compare", "complex", "divide", "maximum", "minimum", "multiply", "next_after", "or"),
    *("polygamma", "power", "remainder", "select", "shift_left", "shift_right_arithmetic", "shift_right_logical"),
    *("subtract", "xor", "zeta"),
)
"""The ops that CHLO has with broadcast operands, too, by their names without a dialect."""
TRANSCENDENTAL_BROADCASTING = ("atan2", "power")

COMBINERS = {entry.name: entry.combiner for entry in OPS if entry.combiner is not None}
"""The combiners of reductions by the names of the ops."""
COMBINING = {combiner: name for name, combiner in COMBINERS.items()}
"""The op of each combiner."""
ON_INTEGERS = {entry.name: entry.on_integers for entry in OPS if entry.on_integers is not None}
"""The values of ops of two integers, by the names of the ops."""
ADD, OR, SUBTRACT, XOR = "stablehlo.add", "stablehlo.or", "stablehlo.subtract", "stablehlo.xor"
CLAMP, COMPARE, CONVERT, SELECT = "stablehlo.clamp", "stablehlo.compare", "stablehlo.convert", "stablehlo.select"
"""Ops that other families write or look for."""
CHOOSING = frozenset((SELECT, *(name for name, combiner in COMBINERS.items() if combiner.is_idempotent)))
"""Ops that make of a value and itself that value; a select of its second and third operand."""
