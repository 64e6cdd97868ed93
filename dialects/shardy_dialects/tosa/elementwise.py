"""Ops that compute each element by itself; dimensions of size 1 are repeated."""

from __future__ import annotations

from shardy_py.ir.graph.program import Op
from shardy_py.plugins import Dialect, Elementwise, Pure
from shardy_py.sharding import einsum, rules
from shardy_py.sharding.rule import OpShardingRule

UNARY = (
    *(
        "abs",
        "bitwise_not",
        "cast",
        "ceil",
        "clamp",
        "clz",
        "cos",
        "erf",
        "exp",
        "floor",
        "identity",
        "log",
        "logical_not",
    ),
    *("reciprocal", "rsqrt", "sigmoid", "sin", "tanh"),
)
BROADCAST = (
    *("add", "apply_scale", "arithmetic_right_shift", "bitwise_and", "bitwise_or", "bitwise_xor", "equal", "greater"),
    *(
        "greater_equal",
        "intdiv",
        "logical_and",
        "logical_left_shift",
        "logical_or",
        "logical_right_shift",
        "logical_xor",
    ),
    *("maximum", "minimum", "mul", "negate", "pow", "select", "sub"),
)


def _rescale(op: Op) -> OpShardingRule | None:
    """Return the rule of a scaling by one number, or by one per channel."""
    scales = ["c" if value.shape == op.operands[0].shape[-1:] else f"s{n}" for n, value in enumerate(op.operands[1:3])]
    return einsum.rule(f"... c, {', '.join(scales)}, y, z -> ... c")(op)


def register(tosa: Dialect) -> None:
    """Define the ops."""
    for name in UNARY:
        tosa.op(f"tosa.{name}", traits=[Elementwise, Pure])
    for name in BROADCAST:
        tosa.op(f"tosa.{name}", traits=[Pure], rule=rules.broadcast)
    tosa.op("tosa.table", traits=[Pure], rule="..., t -> ...", need_replication="t")
    tosa.op("tosa.rescale", traits=[Pure], rule=_rescale)
