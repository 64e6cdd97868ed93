"""The results of collectives between shardings: some are gathers or moves of less than they say."""

from __future__ import annotations

from attrs import evolve

from shardy_py.ir.graph.op_names import ALL_GATHER, CONSTANT
from shardy_py.ir.graph.program import Op, Value
from shardy_py.ir.interfaces.local import CannotLocalize, Shard, local_constant, local_form
from shardy_py.local.agreement import has_unfit_axes
from shardy_py.local.collectives import MOVES, CollectiveConverter, CollectiveOptions
from shardy_py.local.early_gathers import cheaper_producer, gathered_operands
from shardy_py.local.fallback import Fallback
from shardy_py.local.partial_results import PartialResults
from shardy_py.local.shard_table import ShardTable
from shardy_py.values import define


@define
class CollectiveResults:
    """The results of the collectives of one program on one device.

    Attributes:
        table: The values on the device.
        options: The forms of collectives.
        fallback: What happens to ops without a local form.
        partial_results: The values that are partial results, or complete in their stead.
    """

    table: ShardTable
    options: CollectiveOptions
    fallback: Fallback
    partial_results: PartialResults

    def of(self, op: Op, shard: Shard) -> Value:
        """Return the result of a collective.

        Args:
            op: The collective.
            shard: It with its operand on the device.

        Raises:
            CannotLocalize: no op of the dialect does what it does.
        """
        complete = self.partial_results.complete_axes(op, is_repeatable=not self.fallback.trust_shardings)
        if op.name in MOVES and not self.fallback.trust_shardings:
            if has_unfit_axes(shard.result_shardings[0]):
                # As in the reference, collectives may pass by a sharding that no devices have: then nothing moves yet.
                self.table.shardings[op.results[0].id] = shard.operand_shardings[0]
                return shard.operands[0]
            if has_unfit_axes(self.table.program.sharding(op.operands[0])):
                return self.fallback.reshard(shard, 0, shard.result_shardings[0])
        return self._gathered_early(op, shard) or CollectiveConverter(shard, self.options, complete).run()

    def _gathered_early(self, op: Op, shard: Shard) -> Value | None:
        """Return the result of an all-gather made from smaller gathered operands, or None where that cannot be."""
        is_early = self.options.early_gathers and not self.fallback.trust_shardings and op.name == ALL_GATHER
        producer = cheaper_producer(op, shard.semantics) if is_early else None
        if producer is None:
            return None
        last, rule = shard.emit.block.last, shard.semantics.get_sharding_rule(producer)
        one_by_one = self.options.per_dim_all_gather
        part = gathered_operands(op, shard, self.table.shard(producer, shard.emit), rule, one_by_one=one_by_one)
        if part is not None:
            try:
                form = local_constant if producer.name == CONSTANT else local_form(producer, shard.semantics)
                (local_result,) = evolve(self.fallback, gathers=False).localize(producer, part, form).results
            except CannotLocalize:
                pass
            else:
                if local_result.type == shard.result_type():
                    return local_result
        shard.emit.erase_after(last)
        return None
