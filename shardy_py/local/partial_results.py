"""Values that are complete on the device although their ops make partial results, and those that must not be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import field

from shardy_py.ir.graph.op_names import ALL_REDUCE, REDUCE_SCATTER
from shardy_py.ir.graph.program import Op, Value
from shardy_py.ir.interfaces.local import Shard
from shardy_py.local.unreduced import keep_on_first
from shardy_py.sharding.axes import AxisRef
from shardy_py.sharding.tensor import TensorSharding
from shardy_py.values import define


@define
class PartialResults:
    """The partial results of one program, and the values that are complete in their stead.

    Attributes:
        uses: The values that ops use as partial results, with the axes along which they are some.
    """

    uses: Mapping[int, TensorSharding]
    _complete: dict[int, tuple[AxisRef, ...]] = field(factory=dict, init=False)

    def as_used(self, op: Op, shard: Shard, results: Sequence[Value], complete: tuple[AxisRef, ...]) -> Sequence[Value]:
        """Return complete results; those that ops use as partial ones are on one device only.

        Args:
            op: The op.
            shard: It on the device.
            results: Its results.
            complete: The axes along which they are complete, though the rule of the op says that they are partial.
        """
        local_results = []
        for value, result in zip(op.results, results, strict=True):
            sharding = self.uses.get(value.id)
            if sharding is None:
                self._complete[value.id] = complete
            local_results.append(result if sharding is None else keep_on_first(shard, result, sharding, complete))
        return local_results

    def complete_axes(self, collective: Op, *, is_repeatable: bool) -> tuple[AxisRef, ...]:
        """Return the axes along which the operand of a collective is complete, and note those of its result.

        Args:
            collective: The collective.
            is_repeatable: Whether a sum of what is summed already changes nothing.
        """
        complete = self._complete.get(collective.operands[0].id, ())
        result = collective.results[0].id
        if complete and collective.name not in (ALL_REDUCE, REDUCE_SCATTER):
            # The result is as complete as the operand, until it is reduced.
            self._complete[result] = complete
        if collective.name == ALL_REDUCE and is_repeatable:
            # The same sum comes again after a second propagation of explicit collectives.
            self._complete[result] = (*complete, *collective.attributes["reduction_axes"].axes)
        return complete
