"""Products and convolutions; zero points, tensors of one element, may follow their operands."""

from __future__ import annotations

from collections.abc import Callable

from shardy_dialects.tosa.convolution_cost import TransposedCost
from shardy_py.ir.graph.program import Op
from shardy_py.plugins import Dialect, Pure
from shardy_py.sharding import einsum
from shardy_py.sharding.rule import OpShardingRule

RULES: dict[str, tuple[str, str, str, int | tuple[int, ...]]] = {
    "matmul": ("n h c, n c w -> n h w", "c", "", ()),
    "fully_connected": ("n c, o c, o -> n o", "c", "", 2),
    "transpose_conv2d": ("n h w c, o k l c, o -> n p q o", "c", "h w k l p q", 2),
}
"""The text of a rule, what is reduced, what must be whole, and the operand that a reduction starts from."""


def _with_zero_points(
    text: str, reduction: str, replicated: str, initial: int | tuple[int, ...]
) -> Callable[[Op], OpShardingRule | None]:
    def rule(op: Op) -> OpShardingRule | None:
        operands, results = text.split(" -> ")
        points = [f"z{number}" for number in range(len(op.operands) - operands.count(",") - 1)]
        return einsum.rule(
            f"{', '.join([operands, *points])} -> {results}",
            reduction=reduction.split(),
            need_replication=replicated.split(),
            initial=initial,
        )(op)

    return rule


def register(tosa: Dialect) -> None:
    """Define the ops."""
    for name, description in RULES.items():
        cost = TransposedCost() if name == "transpose_conv2d" else None
        tosa.op(f"tosa.{name}", traits=[Pure], rule=_with_zero_points(*description), cost=cost)
