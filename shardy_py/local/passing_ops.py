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
from shardy_py.sharding.tensor import TensorSharding

FORWARDING = frozenset((PROPAGATION_BARRIER, DATA_FLOW_EDGE, FUNC_DATA_FLOW_EDGE))
"""The ops that hand their operand on."""
RESHARDS = frozenset((RESHARD, CONSTRAINT))
"""The ops that reshard their operand, for which no collectives were made yet."""
PASSING = FORWARDING | RESHARDS | {ALL_SLICE}
"""The ops whose result is their operand where both have the same shards."""
_USERS_OF_UNBARRIERED_SHARDING = RESHARDS | COLLECTIVES
"""The ops that are made for the sharding that their operand has by itself."""


def changes_nothing(before: TensorSharding | None, after: TensorSharding | None) -> bool:
    """Return whether a device has the same part of a tensor under two shardings."""
    if before is None:
        return after is None or after.is_fully_replicated
    return before.is_equivalent(after, ignore_unreduced_axes=True)


def is_looked_through(op: Op) -> bool:
    """Return whether the users of an op are made for the sharding that its operand has.

    Ops behind a barrier were resharded as if it were not there, unless they are reshards or collectives themselves.
    """
    if op.name != PROPAGATION_BARRIER:
        return False
    return not any(user.name in _USERS_OF_UNBARRIERED_SHARDING for user in op.results[0].users)
