"""Ops whose result is their operand: barriers, edges, and reshards between equal shardings."""

from __future__ import annotations

from shardy_py.ir.graph.op_names import (
    ALL_SLICE,
    CONSTRAINT,
    DATA_FLOW_EDGE,
    FUNC_DATA_FLOW_EDGE,
    PROPAGATION_BARRIER,
    RESHARD,
)
from shardy_py.ir.graph.program import Op
from shardy_py.local.collectives import COLLECTIVES
from shardy_py.local.shard_table import ShardTable

FORWARDING = frozenset((PROPAGATION_BARRIER, DATA_FLOW_EDGE, FUNC_DATA_FLOW_EDGE))
"""The ops that hand their operand on."""
RESHARDS = frozenset((RESHARD, CONSTRAINT))
"""The ops that reshard their operand, for which no collectives were made yet."""
_PASSING = FORWARDING | RESHARDS | {ALL_SLICE}
"""The ops whose result is their operand where both have the same shards."""
_USERS_OF_UNBARRIERED_SHARDING = RESHARDS | COLLECTIVES
"""The ops that are made for the sharding that their operand has by itself."""


def pass_through(op: Op, table: ShardTable) -> bool:
    """Let the result of an op be its operand where both have the same shards, and return whether this was done.

    The users of a barrier were resharded as if it were not there, unless they are reshards or collectives themselves:
    then they are made for the sharding that its operand has, and it becomes that of its result.
    """
    if op.name not in _PASSING:
        return False
    operand, result = op.operands[0], op.results[0]
    if not table.have_same_shards(operand, result):
        if op.name != PROPAGATION_BARRIER or any(user.name in _USERS_OF_UNBARRIERED_SHARDING for user in result.users):
            return False
        table.shardings[result.id] = table.sharding(operand)
    table.map([result], [table.local[operand.id]])
    return True
