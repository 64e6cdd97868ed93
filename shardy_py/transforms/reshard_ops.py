"""Ops of Shardy that give their operand another sharding."""

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
