"""Ops that hand values on: calls, terminators, and region ops with data-flow edges."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import evolve

from shardy_py.ir.graph.op_names import CALL
from shardy_py.ir.graph.program import Op, Value
from shardy_py.ir.interfaces.local import Shard
from shardy_py.ir.interfaces.ops import IsTerminator, OpSemantics
from shardy_py.local.fallback import Fallback
from shardy_py.local.receivers import Receivers
from shardy_py.local.type_checks import check_region_types


def is_framework(op: Op, semantics: OpSemantics) -> bool:
    """Return whether an op only passes values on: calls, terminators and region ops with data-flow edges."""
    if op.name == CALL or semantics.has_trait(op, IsTerminator):
        return True
    return semantics.get_data_flow(op) is not None or (op.parent is not None and op.parent.last is op)


def forward_operands(op: Op, shard: Shard, fallback: Fallback, receivers: Receivers) -> Sequence[Value]:
    """Return the results of an op that forwards values: operands are sharded like the values that receive them.

    Results on no edge are whole before they get the shardings that they shall have.
    """
    values = [
        fallback.reshard(shard, number, receivers.sharding(op, number, before))
        for number, before in enumerate(shard.operand_shardings)
    ]
    flow = shard.semantics.get_data_flow(op)
    if flow is None:
        return evolve(shard, operands=values).copy()
    targets = receivers.members(op, flow).targets
    pairs = zip(op.results, shard.result_shardings, strict=True)
    shardings = [sharding if value.id in targets else None for value, sharding in pairs]
    part = evolve(shard, operands=values, result_shardings=shardings)
    results = part.copy()
    if shard.emit.block.last is not None:
        check_region_types(op, shard.emit.block.last, flow, receivers.members(op, flow))
    return fallback.slice_results(shard, part, results)
