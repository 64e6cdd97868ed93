"""Ops of Shardy that give their operand another sharding."""

from __future__ import annotations

RESHARDS = {
    "sdy.reshard": "sharding",
    "sdy.sharding_constraint": "sharding",
    "sdy.all_gather": "out_sharding",
    "sdy.all_reduce": "out_sharding",
    "sdy.all_slice": "out_sharding",
    "sdy.all_to_all": "out_sharding",
    "sdy.collective_permute": "out_sharding",
    "sdy.reduce_scatter": "out_sharding",
    "sdy.replicated_to_unreduced": "out_sharding",
    "sdy.sharded_to_unreduced": "out_sharding",
}
"""Name of an op that changes the sharding of its operand to the attribute that holds the new one."""
