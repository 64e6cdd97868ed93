"""Ops that compute each element from those at its place."""

from __future__ import annotations

from tests.conformance.local_ops.case import Case

FLOAT = "9x15xf32"
INTEGER = "9x15xi32"
BOOLEAN = "9x15xi1"
COMPLEX = "9x15xcomplex<f32>"
LESS = "comparison_direction = #stablehlo<comparison_direction LT>"
BODY = """{
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    %s = stablehlo.subtract %x, %y : tensor<f32>
    stablehlo.return %s : tensor<f32>
}"""

UNARY = (
    *("abs", "cbrt", "ceil", "cosine", "exponential", "exponential_minus_one", "floor", "log", "log_plus_one"),
    *("logistic", "negate", "round_nearest_afz", "round_nearest_even", "rsqrt", "sign", "sine", "sqrt", "tan", "tanh"),
)
OF_INTEGERS = ("count_leading_zeros", "not", "popcnt")
BINARY = ("add", "atan2", "divide", "maximum", "minimum", "multiply", "power", "remainder", "subtract")
OF_TWO_INTEGERS = ("and", "or", "shift_left", "shift_right_arithmetic", "shift_right_logical", "xor")
QUANTIZED = "!quant.uniform<i8:f32, 5.000000e-01:3>"


def integers(name: str, count: int) -> Case:
    """Return an op on integers."""
    return Case(f"stablehlo.{name}", [INTEGER] * count, [INTEGER], low=0, high=9)


CASES = [
    *(Case(f"stablehlo.{name}", [FLOAT], [FLOAT], low=0.1, high=2.9) for name in UNARY),
    *(Case(f"stablehlo.{name}", [FLOAT, FLOAT], [FLOAT], low=0.1, high=2.9) for name in BINARY),
    *(integers(name, 1) for name in OF_INTEGERS),
    *(integers(name, 2) for name in OF_TWO_INTEGERS),
    Case("stablehlo.is_finite", [FLOAT], [BOOLEAN]),
    Case("stablehlo.real", [COMPLEX], [FLOAT]),
    Case("stablehlo.imag", [COMPLEX], [FLOAT]),
    Case("stablehlo.complex", [FLOAT, FLOAT], [COMPLEX]),
    Case("stablehlo.compare", [FLOAT, FLOAT], [BOOLEAN], LESS),
    Case("stablehlo.convert", [FLOAT], [INTEGER], low=-5, high=5),
    Case("stablehlo.reduce_precision", [FLOAT], [FLOAT], "exponent_bits = 5 : i32, mantissa_bits = 3 : i32"),
    Case("stablehlo.clamp", [FLOAT, FLOAT, FLOAT], [FLOAT]),
    Case("stablehlo.clamp", ["f32", FLOAT, "f32"], [FLOAT]),
    Case("stablehlo.select", [BOOLEAN, FLOAT, FLOAT], [FLOAT]),
    Case("stablehlo.select", ["i1", FLOAT, FLOAT], [FLOAT]),
    Case("stablehlo.bitcast_convert", [FLOAT], [INTEGER]),
    Case("stablehlo.bitcast_convert", [FLOAT], ["9x15x4xi8"]),
    Case("stablehlo.bitcast_convert", ["9x15x2xi16"], [INTEGER], high=99),
    Case("stablehlo.map", [FLOAT, FLOAT], [FLOAT], "dimensions = array<i64: 0, 1>", BODY),
    Case("stablehlo.uniform_quantize", [FLOAT], [f"9x15x{QUANTIZED}"]),
    Case("stablehlo.uniform_dequantize", [f"9x15x{QUANTIZED}"], [FLOAT]),
]
