"""The ops of the sdy dialect itself: constraints, barriers, region ops, edges, collectives."""

from __future__ import annotations

from shardy_dialects.sdy.region_ops import ManualComputationDataFlow, RegionDataFlow
from shardy_py.indexing import OpIndexing, op_maps
from shardy_py.ir.graph.program import Op
from shardy_py.ir.graph.types import static_shape
from shardy_py.ir.interfaces.result_sizes import constant_sizes
from shardy_py.plugins import (
    ConstantLike,
    Dialect,
    ElementBuilder,
    Elementwise,
    IsolatedFromAbove,
    IsTerminator,
    PassThrough,
    PropagationBarrier,
    Pure,
    RecursiveMemoryEffects,
    ReturnLike,
    Scalar,
    UpstreamDataFlow,
    hookimpl,
)
from shardy_py.sharding.rule_builder import pointwise_rule

sdy = Dialect("sdy")


def _no_rule(op: Op) -> None:
    """Return no rule: nothing propagates through the op, although it is elementwise."""


def _same_index(op: Op) -> OpIndexing | None:
    """Read the operand at the index of the result."""
    shape = static_shape(op.results[0].type)
    if shape is None or 0 in shape:
        return None
    return OpIndexing([op_maps.identity(shape)], [op_maps.identity(shape)])


def _operand(b: ElementBuilder, op: Op) -> Scalar:
    """Return the element of the operand."""
    return b.operand(0)


# These three compute nothing per element, but they must propagate as early as elementwise ops do. Only the
# constraint has a rule: a reshard is there to keep its two sides apart, a barrier to let through one direction.
# In the kernel of one device each gives its operand.
sdy.op(
    "sdy.sharding_constraint",
    traits=[Elementwise],
    rule=pointwise_rule,
    sharding_attribute="sharding",
    indexing=_same_index,
    emission=_operand,
)
sdy.op(
    "sdy.reshard",
    traits=[Elementwise, Pure],
    rule=_no_rule,
    sharding_attribute="sharding",
    indexing=_same_index,
    emission=_operand,
)
sdy.op(
    "sdy.propagation_barrier",
    traits=[Elementwise, PropagationBarrier, Pure],
    rule=_no_rule,
    indexing=_same_index,
    emission=_operand,
)

# Not ConstantLike in upstream either by trait, but by meaning: it is what constants become once they are split.
sdy.op("sdy.constant", traits=[ConstantLike, Pure], sizes=constant_sizes)

sdy.op("sdy.mesh")
sdy.op("sdy.sharding_group")
sdy.op("sdy.return", traits=[IsTerminator, ReturnLike, Pure])

REGION_OP_TRAITS = (IsolatedFromAbove, RecursiveMemoryEffects, UpstreamDataFlow)
sdy.op("sdy.manual_computation", traits=REGION_OP_TRAITS, data_flow=ManualComputationDataFlow())
sdy.op("sdy.named_computation", traits=REGION_OP_TRAITS, data_flow=RegionDataFlow())

# An edge may stand on a value without users; as a pure op it would be erased.
sdy.op("sdy.data_flow_edge", traits=[PassThrough], sharding_attribute="sharding")
sdy.op("sdy.func_data_flow_edge", traits=[PassThrough])

COLLECTIVES = (
    "all_gather",
    "all_reduce",
    "all_slice",
    "all_to_all",
    "collective_permute",
    "reduce_scatter",
    "replicated_to_unreduced",
    "sharded_to_unreduced",
)
for _name in COLLECTIVES:
    sdy.op(f"sdy.{_name}", sharding_attribute="out_sharding")


@hookimpl
def shardy_register_dialects() -> list[Dialect]:
    """Return the dialect sdy."""
    return [sdy]
