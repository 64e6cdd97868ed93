"""Resizing and Fourier transforms: images are whole, batches and channels are sharded."""

from __future__ import annotations

from shardy_py.ir.graph.program import Op
from shardy_py.plugins import Dialect, Pure
from shardy_py.sharding import einsum
from shardy_py.sharding.rule import OpShardingRule

_IMAGE = "h w p q"


def _resize(op: Op) -> OpShardingRule | None:
    shapes = ", " * (len(op.operands) - 1)
    return einsum.rule(f"n h w c{shapes} -> n p q c", need_replication=_IMAGE.split())(op)


def register(tosa: Dialect) -> None:
    """Define the ops."""
    tosa.op("tosa.resize", traits=[Pure], rule=_resize)
    tosa.op("tosa.fft2d", traits=[Pure], rule="n h w, n h w -> n h w, n h w", need_replication="h, w")
    tosa.op("tosa.rfft2d", traits=[Pure], rule="n h w -> n h v, n h v", need_replication="h, w, v")
