"""Names of the ops of the dialects func and sdy that the stages know."""

from __future__ import annotations

FUNCTION = "func.func"
CALL = "func.call"
RETURN = "func.return"

MESH = "sdy.mesh"
CONSTANT = "sdy.constant"
CONSTRAINT = "sdy.sharding_constraint"
RESHARD = "sdy.reshard"
PROPAGATION_BARRIER = "sdy.propagation_barrier"
SHARDING_GROUP = "sdy.sharding_group"
MANUAL_COMPUTATION = "sdy.manual_computation"
NAMED_COMPUTATION = "sdy.named_computation"
REGION_RETURN = "sdy.return"
DATA_FLOW_EDGE = "sdy.data_flow_edge"
FUNC_DATA_FLOW_EDGE = "sdy.func_data_flow_edge"

ALL_GATHER = "sdy.all_gather"
ALL_REDUCE = "sdy.all_reduce"
REDUCE_SCATTER = "sdy.reduce_scatter"
ALL_SLICE = "sdy.all_slice"
ALL_TO_ALL = "sdy.all_to_all"
COLLECTIVE_PERMUTE = "sdy.collective_permute"
SHARDED_TO_UNREDUCED = "sdy.sharded_to_unreduced"
REPLICATED_TO_UNREDUCED = "sdy.replicated_to_unreduced"
