"""A small program and a dialect for it."""

from __future__ import annotations

from shardy_py.ir.graph.builder import Builder
from shardy_py.ir.graph.program import Op, Program
from shardy_py.ir.graph.types import tensor
from shardy_py.ir.interfaces.ops import ConstantLike, Elementwise, IsTerminator
from shardy_py.plugins import Dialect, Registry
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.rule import OpShardingRule
from shardy_py.sharding.rule_builder import pointwise_rule


def registry() -> Registry:
    """Return a registry that knows ``toy.add`` and ``toy.zeros``, but not ``toy.matmul``."""
    toy = Dialect("toy")
    toy.op("toy.zeros", traits=[ConstantLike])
    toy.op("func.return", traits=[IsTerminator])

    @toy.op("toy.add", traits=[Elementwise])
    def add(op: Op) -> OpShardingRule | None:
        return pointwise_rule(op)

    return Registry.of([toy])


def program() -> Program:
    """Return ``main(x, w) = x @ w + zeros`` with a sharded ``x``, over a mesh a=2, b=2."""
    builder = Builder(mesh=Mesh.of(a=2, b=2))
    with builder.function("main", [tensor(8, 16), tensor(16, 4)]) as (x, w):
        builder.shard(x, '[{"a"}, {}]')
        zeros = builder.op("toy.zeros", [], [tensor(8, 4)])
        product = builder.op("toy.matmul", [x, w], [tensor(8, 4)])
        builder.return_(builder.op("toy.add", [product, zeros], [tensor(8, 4)]))
    return builder.program
