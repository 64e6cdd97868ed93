"""Elementwise ops, of StableHLO and of its clients."""

from __future__ import annotations

from math import erf, erfc, lgamma
from typing import Any

import numpy as np

from tests.unit.dialects.stablehlo.numeric.case import Case, booleans, complexes, integers

SHAPE = (4, 6)
INT, BOOL, COMPLEX = integers(*SHAPE), booleans(*SHAPE), complexes(*SHAPE)
SHIFTS = np.arange(24, dtype=np.int32).reshape(SHAPE) % 7
POSITIVE = np.linspace(0.3, 0.9, 24).reshape(SHAPE)


def leading_zeros(x: Any) -> Any:
    """The zeros before the first bit that is set, of 32."""
    return np.vectorize(lambda value: 32 - (int(value) & 0xFFFFFFFF).bit_length())(x)


def away_from_zero(x: Any) -> Any:
    """Round halves away from zero."""
    return np.copysign(np.floor(np.abs(x) + 0.5), x)


def logistic(x: Any) -> Any:
    """The logistic function."""
    return 1 / (1 + np.exp(-x))


UNARY: dict[str, Any] = {
    "abs": np.abs,
    "cbrt": np.cbrt,
    "ceil": np.ceil,
    "convert": lambda x: x.astype(np.int32),
    "cosine": np.cos,
    "exponential": np.exp,
    "exponential_minus_one": np.expm1,
    "floor": np.floor,
    "is_finite": np.isfinite,
    "log": np.log,
    "log_plus_one": np.log1p,
    "logistic": logistic,
    "negate": np.negative,
    "reduce_precision": lambda x: x.astype(np.float16),
    "round_nearest_afz": away_from_zero,
    "round_nearest_even": np.rint,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "sign": np.sign,
    "sine": np.sin,
    "sqrt": np.sqrt,
    "tan": np.tan,
    "tanh": np.tanh,
    "uniform_quantize": lambda x: np.rint(x / 0.1).astype(np.int8),
    "chlo.acos": np.arccos,
    "chlo.acosh": np.arccosh,
    "chlo.asin": np.arcsin,
    "chlo.asinh": np.arcsinh,
    "chlo.atan": np.arctan,
    "chlo.atanh": np.arctanh,
    "chlo.constant_like": lambda x: np.full_like(x, 3),
    "chlo.cosh": np.cosh,
    "chlo.erf": np.vectorize(erf),
    "mhlo.erf": np.vectorize(erf),
    "chlo.erfc": np.vectorize(erfc),
    "chlo.is_inf": np.isinf,
    "chlo.is_neg_inf": np.isneginf,
    "chlo.is_pos_inf": np.isposinf,
    "chlo.lgamma": np.vectorize(lgamma),
    "chlo.sinh": np.sinh,
    "chlo.square": np.square,
    "chlo.tan": np.tan,
}

OTHER_UNARY: dict[str, Any] = {
    "count_leading_zeros": (INT, leading_zeros),
    "imag": (COMPLEX, np.imag),
    "not": (INT, np.invert),
    "popcnt": (INT, np.bitwise_count),
    "real": (COMPLEX, np.real),
    "uniform_dequantize": (integers(*SHAPE, dtype="i8"), lambda x: x * 0.1),
    "chlo.conj": (COMPLEX, np.conj),
}

BINARY: dict[str, Any] = {
    "add": np.add,
    "and": np.bitwise_and,
    "atan2": np.arctan2,
    "compare": np.less,
    "complex": lambda x, y: x + 1j * y,
    "divide": np.divide,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "multiply": np.multiply,
    "or": np.bitwise_or,
    "power": np.float_power,
    "remainder": np.fmod,
    "shift_left": np.left_shift,
    "shift_right_arithmetic": np.right_shift,
    "shift_right_logical": lambda x, y: x.astype(np.uint32) >> y.astype(np.uint32),
    "subtract": np.subtract,
    "xor": np.bitwise_xor,
}
BITWISE = ("and", "or", "xor")


def binary_operands(name: str, shape: Any = SHAPE) -> list[Any]:
    """Operands that suit an op; the second may have another shape."""
    if name.startswith("shift"):
        return [INT, np.resize(SHIFTS, shape)]
    return [INT, integers(*shape)] if name in BITWISE else [SHAPE, shape]


CASES = [
    *(Case(name, [SHAPE], function) for name, function in UNARY.items()),
    *(Case(name, [type_], function) for name, (type_, function) in OTHER_UNARY.items()),
    *(Case(name, binary_operands(name), function) for name, function in BINARY.items()),
    *(Case(f"chlo.broadcast_{name}", binary_operands(name, (6,)), function) for name, function in BINARY.items()),
    Case("clamp", [SHAPE, SHAPE, SHAPE], lambda low, x, high: np.minimum(np.maximum(x, low), high)),
    Case("clamp", [(), SHAPE, ()], lambda low, x, high: np.minimum(np.maximum(x, low), high)),
    Case("select", [BOOL, SHAPE, SHAPE], np.where),
    Case("select", [np.array(True), SHAPE, SHAPE], np.where),
    Case("chlo.broadcast_select", [booleans(6), SHAPE, SHAPE], np.where),
    Case("map", [SHAPE, SHAPE], lambda x, y: np.sin(x) * y),
    Case("chlo.mulhi", [INT, INT], lambda x, y: (x.astype(np.int64) * y) >> 32),
    Case("chlo.next_after", [SHAPE, SHAPE], np.nextafter),
    Case("chlo.broadcast_next_after", [SHAPE, (6,)], np.nextafter),
    Case("bitcast_convert", [np.arange(24, dtype=np.float32).reshape(SHAPE)], lambda x: x.view(np.int32)),
    Case(
        "bitcast_convert",
        [np.linspace(-1, 1, 24, dtype=np.float32).reshape(SHAPE)],
        lambda x: np.ascontiguousarray(x).view(np.uint16).reshape(*x.shape, 2),
    ),
    Case(
        "bitcast_convert",
        [np.arange(16, dtype=np.uint16).reshape(2, 4, 2)],
        lambda x: np.ascontiguousarray(x).view(np.uint32)[..., 0],
    ),
]


def special_cases() -> list[Case]:
    """The functions that only scipy has."""
    from scipy import special

    return [
        Case("chlo.bessel_i1e", [SHAPE], special.i1e),
        Case("chlo.digamma", [POSITIVE], special.digamma),
        Case("chlo.erf_inv", [POSITIVE], special.erfinv),
        Case("chlo.polygamma", [SHIFTS, POSITIVE], special.polygamma),
        Case("chlo.zeta", [POSITIVE + 1, POSITIVE], special.zeta),
        Case("chlo.broadcast_polygamma", [SHIFTS, POSITIVE[0]], special.polygamma),
        Case("chlo.broadcast_zeta", [POSITIVE + 1, POSITIVE[0]], special.zeta),
    ]
