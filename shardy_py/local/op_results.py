"""The results of an op on one device, from its operands on that device, by what kind of op it is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from attrs import evolve, field

from shardy_py.errors import Diagnostic, ShardyError, UnsupportedError
from shardy_py.ir.graph.op_names import ALL_GATHER, ALL_REDUCE, CALL, CONSTANT, REDUCE_SCATTER
from shardy_py.ir.graph.program import Op, Value
from shardy_py.ir.interfaces.local import (
    CannotLocalize,
    LocalEmitter,
    LocalSemantics,
    Shard,
    local_constant,
)
from shardy_py.ir.interfaces.ops import IsTerminator, OpSemantics
from shardy_py.local.agreement import has_unfit_axes, reduced_axes
from shardy_py.local.collectives import COLLECTIVES, MOVES, CollectiveConverter, CollectiveOptions
from shardy_py.local.early_gathers import cheaper_producer, gathered_operands
from shardy_py.local.fallback import Fallback
from shardy_py.local.look_ups import look_up
from shardy_py.local.passing_ops import FORWARDING, RESHARDS
from shardy_py.local.receivers import Receivers
from shardy_py.local.shard_table import ShardTable, at_op
from shardy_py.local.type_checks import check_region_types
from shardy_py.local.unreduced import TO_UNREDUCED, keep_on_first, make_unreduced
from shardy_py.sharding.axes import AxisRef
from shardy_py.sharding.manual_axes import common_mesh
from shardy_py.sharding.tensor import TensorSharding
from shardy_py.values import define


@define
class OpResults:
    """The results of the ops of one program on one device.

    Attributes:
        table: The values on the device.
        semantics: What is known about ops.
        options: The forms of collectives.
        fallback: What happens to ops without a local form.
        receivers: The values that get operands.
        partial_values: The values that ops use as partial results, with the axes along which they are some.
        waiting: The all-gathers whose only user may look up what it needs, by the value that they make.
    """

    table: ShardTable
    semantics: OpSemantics
    options: CollectiveOptions
    fallback: Fallback
    receivers: Receivers
    partial_values: Mapping[int, TensorSharding]
    waiting: dict[int, Op] = field(factory=dict, init=False)
    _complete: dict[int, tuple[AxisRef, ...]] = field(factory=dict, init=False)

    def of(self, op: Op, shard: Shard) -> Sequence[Value]:
        """Return the results of an op.

        Args:
            op: The op.
            shard: It with its operands on the device.

        Raises:
            ShardyError: it has no local form.
        """
        try:
            if op.name in RESHARDS:
                return [self._reshard(op, shard)]
            if op.name in FORWARDING:
                return [self.fallback.reshard(shard, 0, shard.result_shardings[0])]
            if op.name in COLLECTIVES:
                return [self._collective(op, shard)]
            if op.name in TO_UNREDUCED:
                return [make_unreduced(shard)]
            if op.name == CONSTANT:
                return local_constant(op, shard)
            if self._is_framework(op):
                return self._forward_operands(op, shard)
            return self._localize(op, shard)
        except ShardyError as error:
            raise type(error)(*(at_op(item, op) for item in error.diagnostics)) from None

    def looked_up(self, op: Op, emit: LocalEmitter) -> Sequence[Value] | None:
        """Return the results of an op computed from the shards of an operand, or gather the operand and return None.

        Args:
            op: The op.
            emit: Where ops go.
        """
        gathering = self.waiting.pop(op.operands[0].id, None) if op.operands else None
        if gathering is None:
            return None
        source = self.table.shard(gathering, emit)
        gathered = gathering.results[0]
        # The parts stand for the whole operand until it is known whether that is needed.
        self.table.local[gathered.id] = source.operands[0]
        shard = self.table.shard(op, emit)
        local_results = look_up(op, shard, source, self.form_of(op))
        if local_results is None:
            self.table.map(gathering.results, self.of(gathering, source))
            return None
        rule = self.semantics.get_sharding_rule(op)
        if rule is None:
            return local_results
        return self._as_used(op, shard, local_results, tuple(reduced_axes(shard, rule)))

    def have_forms(self, ops: Iterable[Op]) -> bool:
        """Return whether all of some ops have local forms of their own, and shardings are not taken as they are."""
        return not self.fallback.trust_shardings and all(self.form_of(op) is not None for op in ops)

    def form_of(self, op: Op) -> Callable[[Op, Shard], Sequence[Value]] | None:
        """Return the local form that an op has of its own, or None."""
        return self.semantics.get_local(op) if isinstance(self.semantics, LocalSemantics) else None

    def _forward_operands(self, op: Op, shard: Shard) -> Sequence[Value]:
        """Return the results of an op that forwards values: operands are sharded like the values that receive them.

        Results on no edge are whole before they get the shardings that they shall have.
        """
        values = [
            self.fallback.reshard(shard, number, self.receivers.sharding(op, number, before))
            for number, before in enumerate(shard.operand_shardings)
        ]
        flow = self.semantics.get_data_flow(op)
        if flow is None:
            return evolve(shard, operands=values).copy()
        targets = self.receivers.members(op, flow).targets
        pairs = zip(op.results, shard.result_shardings, strict=True)
        shardings = [sharding if value.id in targets else None for value, sharding in pairs]
        part = evolve(shard, operands=values, result_shardings=shardings)
        results = part.copy()
        if shard.emit.block.last is not None:
            check_region_types(op, shard.emit.block.last, flow, self.receivers.members(op, flow))
        return self.fallback.slice_results(shard, part, results)

    def _localize(self, op: Op, shard: Shard) -> Sequence[Value]:
        outcome = self.fallback.localize(op, shard, self.form_of(op))
        if outcome.complete:
            return self._as_used(op, shard, outcome.results, outcome.complete)
        return outcome.results

    def _as_used(
        self, op: Op, shard: Shard, results: Sequence[Value], complete: tuple[AxisRef, ...]
    ) -> Sequence[Value]:
        """Return complete results; those that ops use as partial ones are on one device only.

        Args:
            op: The op.
            shard: It on the device.
            results: Its results.
            complete: The axes along which they are complete, though the rule of the op says that they are partial.
        """
        local_results = []
        for value, result in zip(op.results, results, strict=True):
            sharding = self.partial_values.get(value.id)
            if sharding is None:
                self._complete[value.id] = complete
            local_results.append(result if sharding is None else keep_on_first(shard, result, sharding, complete))
        return local_results

    def _collective(self, op: Op, shard: Shard) -> Value:
        complete = self._complete.get(op.operands[0].id, ())
        if complete and op.name not in (ALL_REDUCE, REDUCE_SCATTER):
            # The result is as complete as the operand, until it is reduced.
            self._complete[op.results[0].id] = complete
        if op.name == ALL_REDUCE and not self.fallback.trust_shardings:
            # A sum of what is summed already, as after a second propagation of explicit collectives, changes nothing.
            self._complete[op.results[0].id] = (*complete, *op.attributes["reduction_axes"].axes)
        if op.name in MOVES and not self.fallback.trust_shardings:
            if has_unfit_axes(shard.result_shardings[0]):
                # As in the reference, collectives may pass by a sharding that no devices have: then nothing moves yet.
                self.table.shardings[op.results[0].id] = shard.operand_shardings[0]
                return shard.operands[0]
            if has_unfit_axes(self.table.program.sharding(op.operands[0])):
                return self.fallback.reshard(shard, 0, shard.result_shardings[0])
        remade = self._gathered_early(op, shard)
        return remade or CollectiveConverter(shard, self.options, complete).run()

    def _gathered_early(self, op: Op, shard: Shard) -> Value | None:
        """Return the result of an all-gather made from smaller gathered operands, or None where that cannot be."""
        is_early = self.options.early_gathers and not self.fallback.trust_shardings and op.name == ALL_GATHER
        producer = cheaper_producer(op, self.semantics) if is_early else None
        if producer is None:
            return None
        last, rule = shard.emit.block.last, self.semantics.get_sharding_rule(producer)
        one_by_one = self.options.per_dim_all_gather
        part = gathered_operands(op, shard, self.table.shard(producer, shard.emit), rule, one_by_one=one_by_one)
        if part is not None:
            try:
                form = local_constant if producer.name == CONSTANT else self.form_of(producer)
                (local_result,) = evolve(self.fallback, gathers=False).localize(producer, part, form).results
            except CannotLocalize:
                pass
            else:
                if local_result.type == shard.result_type():
                    return local_result
        shard.emit.erase_after(last)
        return None

    def _is_framework(self, op: Op) -> bool:
        """Return whether an op hands values on: calls, terminators and region ops with data-flow edges."""
        if op.name == CALL or self.semantics.has_trait(op, IsTerminator):
            return True
        return self.semantics.get_data_flow(op) is not None or (op.parent is not None and op.parent.last is op)

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
