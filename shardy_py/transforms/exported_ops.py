"""Ops that need care on export: those that reshard, and sorts, whose dimension may count from the end."""

from __future__ import annotations

from shardy_py.ir.graph.op_names import (
    ALL_GATHER,
    ALL_REDUCE,
    ALL_SLICE,
    ALL_TO_ALL,
    COLLECTIVE_PERMUTE,
    CONSTRAINT,
    REDUCE_SCATTER,
    REPLICATED_TO_UNREDUCED,
    RESHARD,
    SHARDED_TO_UNREDUCED,
)
from shardy_py.ir.graph.program import Program
from shardy_py.ir.graph.walk import ops_named

RESHARDS = {
    RESHARD: "sharding",
    CONSTRAINT: "sharding",
    ALL_GATHER: "out_sharding",
    ALL_REDUCE: "out_sharding",
    ALL_SLICE: "out_sharding",
    ALL_TO_ALL: "out_sharding",
    COLLECTIVE_PERMUTE: "out_sharding",
    REDUCE_SCATTER: "out_sharding",
    REPLICATED_TO_UNREDUCED: "out_sharding",
    SHARDED_TO_UNREDUCED: "out_sharding",
}
"""Name of an op that changes the sharding of its operand to the attribute that holds the new one."""


_SORT = "stablehlo.sort"


def count_from_the_front(program: Program) -> None:
    """Count the dimension of every ``stablehlo.sort`` from the front, as JAX writes it."""
    for op in ops_named(program, _SORT):
        dim = op.attributes.get("dimension")
        if isinstance(dim, int) and dim < 0:
            op.attributes["dimension"] = dim + len(op.operands[0].shape)
