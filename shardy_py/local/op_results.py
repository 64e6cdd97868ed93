"""The results of an op on one device, from its operands on that device, by what kind of op it is."""

from __future__ import annotations

from collections.abc import Sequence

from shardy_py.errors import Diagnostic, ShardyError, UnsupportedError
from shardy_py.ir.graph.op_names import CONSTANT
from shardy_py.ir.graph.program import Op, Value
from shardy_py.ir.interfaces.local import LocalEmitter, Localize, Shard, local_constant
from shardy_py.local.agreement import reduced_axes
from shardy_py.local.collective_results import CollectiveResults
from shardy_py.local.collectives import COLLECTIVES
from shardy_py.local.fallback import Fallback
from shardy_py.local.framework_ops import forward_operands, is_framework
from shardy_py.local.look_ups import WaitingGathers, look_up
from shardy_py.local.partial_results import PartialResults
from shardy_py.local.passing_ops import FORWARDING, RESHARDS
from shardy_py.local.receivers import Receivers
from shardy_py.local.shard_table import ShardTable, at_op
from shardy_py.local.unreduced import TO_UNREDUCED, make_unreduced
from shardy_py.sharding.manual_axes import common_mesh
from shardy_py.values import define


@define
class OpResults:
    """The results of the ops of one program on one device.

    Attributes:
        table: The values on the device.
        fallback: What happens to ops without a local form.
        receivers: The values that get operands.
        collectives: The results of collectives.
        partial_results: The values that are partial results, or complete in their stead.
        waiting: The all-gathers whose only user may look up what it needs.
    """

    table: ShardTable
    fallback: Fallback
    receivers: Receivers
    collectives: CollectiveResults
    partial_results: PartialResults
    waiting: WaitingGathers

    def of(self, op: Op, form: Localize | None, emit: LocalEmitter) -> Sequence[Value]:
        """Return the results of an op.

        Args:
            op: The op.
            form: The local form that it has of its own, or None.
            emit: Where ops go.

        Raises:
            ShardyError: it has no local form.
        """
        gathering = self.waiting.pop(op)
        if gathering is not None:
            results = self._looked_up(op, form, gathering, emit)
            if results is not None:
                return results
            self.table.map(gathering.results, self.of(gathering, None, emit))
        shard = self.table.shard(op, emit)
        try:
            return self._results(op, form, shard)
        except ShardyError as error:
            raise type(error)(*(at_op(item, op) for item in error.diagnostics)) from None

    def _looked_up(self, op: Op, form: Localize | None, gathering: Op, emit: LocalEmitter) -> Sequence[Value] | None:
        """Return the results of an op computed from the shards of a gathered operand, or None where it needs all."""
        source = self.table.shard(gathering, emit)
        # The parts stand for the whole operand until it is known whether that is needed.
        self.table.local[gathering.results[0].id] = source.operands[0]
        shard = self.table.shard(op, emit)
        results, rule = look_up(op, shard, source, form), shard.semantics.get_sharding_rule(op)
        if results is None or rule is None:
            return results
        return self.partial_results.as_used(op, shard, results, tuple(reduced_axes(shard, rule)))

    def _results(self, op: Op, form: Localize | None, shard: Shard) -> Sequence[Value]:
        if op.name in RESHARDS:
            return [self._reshard(op, shard)]
        if op.name in FORWARDING:
            return [self.fallback.reshard(shard, 0, shard.result_shardings[0])]
        if op.name in COLLECTIVES:
            return [self.collectives.of(op, shard)]
        if op.name in TO_UNREDUCED:
            return [make_unreduced(shard)]
        if op.name == CONSTANT:
            return local_constant(op, shard)
        if is_framework(op, shard.semantics):
            return forward_operands(op, shard, self.fallback, self.receivers)
        outcome = self.fallback.localize(op, shard, form)
        if outcome.complete:
            return self.partial_results.as_used(op, shard, outcome.results, outcome.complete)
        return outcome.results

    def _reshard(self, op: Op, shard: Shard) -> Value:
        """Return the operand of a reshard between two meshes, gathered: no collectives are made for it before.

        Raises:
            UnsupportedError: it is on one mesh, or nothing may be gathered.
        """
        ends = [item for item in (*shard.operand_shardings, *shard.result_shardings) if item is not None]
        is_partial = any(item.unreduced_axes for item in ends)
        if common_mesh(ends, self.table.meshes) is not None or is_partial:
            message = "a reshard between two shardings has no local form"
            hint = "run sdy-reshard-to-collectives first, or ask for explicit collectives"
            raise UnsupportedError(Diagnostic("reshard", message, hint=hint))
        if not self.fallback.gathers:
            message = "a reshard between two meshes is not a collective"
            hint = "put the values on one mesh, or allow ops to be gathered"
            raise UnsupportedError(Diagnostic("reshard", message, hint=hint))
        return self.fallback.reshard(shard, 0, shard.result_shardings[0])
