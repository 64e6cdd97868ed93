"""Names of the ops of the dialects func and sdy that the stages know."""

from __future__ import annotations

FUNCTION = "func.func"
CALL = "func.call"
RETURN = "func.return"

MESH = "sdy.mesh"
CONSTANT = "sdy.constant"
CONSTRAINT = "sdy.sharding_constraint"
RESHARD = "sdy.reshard"
SHARDING_GROUP = "sdy.sharding_group"
MANUAL_COMPUTATION = "sdy.manual_computation"
NAMED_COMPUTATION = "sdy.named_computation"
REGION_RETURN = "sdy.return"
DATA_FLOW_EDGE = "sdy.data_flow_edge"
FUNC_DATA_FLOW_EDGE = "sdy.func_data_flow_edge"

ALL_GATHER = "sdy.all_gather"
ALL_REDUCE = "sdy.all_reduce"
REDUCE_SCATTER = "sdy.reduce_scatter"
