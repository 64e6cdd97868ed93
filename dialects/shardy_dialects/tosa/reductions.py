"""Reductions along one axis, which keeps its place with size 1, and the position of the largest element."""

from __future__ import annotations

from collections.abc import Callable

from shardy_dialects.tosa.moves import dim_names
from shardy_py.ir.graph.program import Op
from shardy_py.plugins import Dialect, Pure
from shardy_py.sharding import einsum, rules
from shardy_py.sharding.rule import OpShardingRule

COMBINERS = {"all": "and", "any": "or", "max": "max", "min": "min", "product": "mul", "prod": "mul", "sum": "add"}


def _reduction(combiner: str) -> Callable[[Op], OpShardingRule | None]:
    return lambda op: rules.reduction(op, op.attributes["axis"], combiner)


def _argmax(op: Op) -> OpShardingRule | None:
    axis, dims = op.attributes["axis"], dim_names(op)
    result_dims = " ".join(dims[:axis] + dims[axis + 1 :])
    return einsum.rule(f"{' '.join(dims)} -> {result_dims}", need_replication=f"d{axis}")(op)


def register(tosa: Dialect) -> None:
    """Define the ops."""
    for name, combiner in COMBINERS.items():
        tosa.op(f"tosa.reduce_{name}", traits=[Pure], rule=_reduction(combiner))
    tosa.op("tosa.argmax", traits=[Pure], rule=_argmax)
