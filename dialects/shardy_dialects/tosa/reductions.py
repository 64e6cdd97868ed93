"""Reductions along one axis, which keeps its place with size 1, and the position of the largest element."""

from __future__ import annotations

from collections.abc import Callable

from shardy_py.ir.graph.program import Op
from shardy_py.plugins import Dialect, Pure
from shardy_py.sharding import einsum
from shardy_py.sharding.rule import OpShardingRule

COMBINERS = {"all": "and", "any": "or", "max": "max", "min": "min", "product": "mul", "prod": "mul", "sum": "add"}


def _reduction(combiner: str) -> Callable[[Op], OpShardingRule | None]:
    def rule(op: Op) -> OpShardingRule | None:
        axis = op.attributes["axis"]
        dims = [f"d{dim}" for dim in range(op.operands[0].type.rank)]  # type: ignore[union-attr]
        result_dims = ["one" if dim == axis else name for dim, name in enumerate(dims)]
        return einsum.rule(f"{' '.join(dims)} -> {' '.join(result_dims)}", reduction=f"d{axis}:{combiner}")(op)

    return rule


def _argmax(op: Op) -> OpShardingRule | None:
    axis = op.attributes["axis"]
    dims = [f"d{dim}" for dim in range(op.operands[0].type.rank)]  # type: ignore[union-attr]
    result_dims = " ".join(dims[:axis] + dims[axis + 1 :])
    return einsum.rule(f"{' '.join(dims)} -> {result_dims}", need_replication=f"d{axis}")(op)


def register(tosa: Dialect) -> None:
    """Define the ops."""
    for name, combiner in COMBINERS.items():
        tosa.op(f"tosa.reduce_{name}", traits=[Pure], rule=_reduction(combiner))
    tosa.op("tosa.argmax", traits=[Pure], rule=_argmax)
