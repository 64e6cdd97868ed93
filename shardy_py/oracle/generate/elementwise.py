"""Feature ``elementwise``: unary and binary ops, compare, select, clamp, convert, complex numbers."""

from __future__ import annotations

from shardy_py.oracle.generate.program import FLOATS, INTEGERS, BlockBuilder, GeneratedValue

UNARY = (
    *("abs", "cbrt", "ceil", "cosine", "exponential", "exponential_minus_one", "floor", "log", "log_plus_one"),
    *("logistic", "negate", "round_nearest_afz", "round_nearest_even", "rsqrt", "sign", "sine", "sqrt", "tan", "tanh"),
)
BINARY = ("add", "atan2", "divide", "maximum", "minimum", "multiply", "power", "remainder", "subtract")
INTEGER_UNARY = ("count_leading_zeros", "not", "popcnt")
INTEGER_BINARY = ("and", "or", "xor", "shift_left", "shift_right_arithmetic", "shift_right_logical")


def like(block: BlockBuilder, value: GeneratedValue) -> GeneratedValue:
    """Return a second operand for an op: often another one of the same type, now and then the same one."""
    return value if block.choices.chance(12) else block.tensor(value.dims, value.dtype)


def unary(block: BlockBuilder) -> None:
    """One float in, the same type out."""
    value = block.floats()
    block.op(f"stablehlo.{block.choices.pick(UNARY)}", [value], [(value.shape, value.dtype)])


def binary(block: BlockBuilder) -> None:
    """Two floats of one type."""
    value = block.floats()
    operands = block.choices.shuffled([value, like(block, value)])
    block.op(f"stablehlo.{block.choices.pick(BINARY)}", operands, [(value.shape, value.dtype)])


def integer(block: BlockBuilder) -> None:
    """Ops on integers, made from floats where there are none."""
    value = block.find(lambda item: item.dtype in INTEGERS)
    if value is None:
        source = block.floats()
        value = block.op("stablehlo.convert", [source], [(source.shape, "i32")])[0]
    if block.choices.chance(30):
        block.op(f"stablehlo.{block.choices.pick(INTEGER_UNARY)}", [value], [(value.shape, value.dtype)])
    else:
        operands = [value, like(block, value)]
        block.op(f"stablehlo.{block.choices.pick(INTEGER_BINARY)}", operands, [(value.shape, value.dtype)])


def compare(block: BlockBuilder, value: GeneratedValue | None = None) -> GeneratedValue:
    """A comparison."""
    value = value or block.floats()
    direction = block.choices.pick(("EQ", "GT", "LE"))
    return block.op(
        "stablehlo.compare",
        [value, like(block, value)],
        [(value.shape, "i1")],
        {"comparison_direction": f"#stablehlo<comparison_direction {direction}>"},
    )[0]


def select(block: BlockBuilder) -> None:
    """A selection by a predicate of the same shape, or by a scalar one."""
    value = block.floats()
    if block.choices.chance(25):
        predicate = block.tensor((), "i1")
    else:
        predicate = block.find(lambda item: item.dtype == "i1" and item.shape == value.shape) or compare(block, value)
    block.op("stablehlo.select", [predicate, value, like(block, value)], [(value.shape, value.dtype)])


def clamp(block: BlockBuilder) -> None:
    """Clamping between tensors or scalars."""
    value = block.floats()
    low, high = (
        block.tensor((), value.dtype) if block.choices.chance(50) else block.tensor(value.dims, value.dtype)
        for _ in range(2)
    )
    block.op("stablehlo.clamp", [low, value, high], [(value.shape, value.dtype)])


def convert(block: BlockBuilder) -> None:
    """Another element type, or less precision."""
    value = block.floats()
    if block.choices.chance(20):
        block.op(
            "stablehlo.reduce_precision",
            [value],
            [(value.shape, value.dtype)],
            {"exponent_bits": "5 : i32", "mantissa_bits": "10 : i32"},
        )
        return
    back = block.find(lambda item: item.dtype in INTEGERS or item.dtype in FLOATS - {"f32"})
    if back is not None and block.choices.chance(60):
        block.op("stablehlo.convert", [back], [(back.shape, "f32")])
    else:
        block.op("stablehlo.convert", [value], [(value.shape, block.choices.pick(("bf16", "i32", "f16", "i8")))])


def complex_parts(block: BlockBuilder) -> None:
    """Into the complex numbers and back."""
    value = block.tensor(block.floats().dims, "f32")
    number = block.op("stablehlo.complex", [value, like(block, value)], [(value.shape, "complex<f32>")])[0]
    block.op(block.choices.pick(("stablehlo.real", "stablehlo.imag")), [number], [(value.shape, "f32")])


def is_finite(block: BlockBuilder) -> None:
    """A predicate of one operand."""
    value = block.floats()
    block.op("stablehlo.is_finite", [value], [(value.shape, "i1")])


EMITTERS = {
    "elementwise": (
        (6, unary),
        (12, binary),
        (1, integer),
        (1, compare),
        (2, select),
        (1, clamp),
        (2, convert),
        (1, complex_parts),
        (1, is_finite),
    )
}
