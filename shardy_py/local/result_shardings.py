"""The shardings that the results of an op, and the arguments of its regions, have on the device."""

from __future__ import annotations

from shardy_py.ir.graph.graphs import callee_of
from shardy_py.ir.graph.op_names import CALL
from shardy_py.ir.graph.program import Op
from shardy_py.ir.graph.walk import region_arguments
from shardy_py.local.agreement import has_unfit_axes
from shardy_py.local.early_gathers import common_slice_of_users
from shardy_py.local.receivers import Receivers
from shardy_py.local.shard_table import ShardTable


def set_result_shardings(op: Op, table: ShardTable, receivers: Receivers, *, may_slice: bool) -> None:
    """Enter the shardings that the results of an op and its region arguments have, where the program has others.

    Args:
        op: The op.
        table: The values on the device.
        receivers: The values that get operands.
        may_slice: Whether the op may make the part of its result that all of its users slice.
    """
    if op.name == CALL:
        for value, sharding in zip(op.results, receivers.results_of(callee_of(op)), strict=False):
            table.shardings[value.id] = sharding
        return
    if may_slice:
        part = common_slice_of_users(op, table.semantics)
        sharding = None if part is None else op.program.sharding(part)
        if sharding is not None and not has_unfit_axes(sharding):
            table.shardings[op.results[0].id] = sharding
    flow = table.semantics.get_data_flow(op)
    if flow is not None:
        targets = receivers.members(op, flow).targets
        for value in (*region_arguments(op), *op.results):
            owner = targets.get(value.id)
            if owner is None and value.defining_op is not op:
                # Arguments on no edge are whole.
                table.shardings[value.id] = None
            elif owner is not None and owner is not value:
                table.shardings[value.id] = table.sharding(owner)
