"""The dimensions of sorts, which may be counted from the end: XLA then sorts shards along others."""

from __future__ import annotations

from shardy_py.ir.graph.program import Program
from shardy_py.ir.graph.walk import ops_named

_SORT = "stablehlo.sort"


def count_from_the_front(program: Program) -> None:
    """Count the dimension of every ``stablehlo.sort`` from the front, as JAX writes it."""
    for op in ops_named(program, _SORT):
        dim = op.attributes.get("dimension")
        if isinstance(dim, int) and dim < 0:
            op.attributes["dimension"] = dim + len(op.operands[0].shape)
