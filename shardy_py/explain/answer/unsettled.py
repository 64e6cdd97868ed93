"""Places where one more visit would change a sharding."""

from __future__ import annotations

from collections.abc import Iterator

from shardy_py.sharding.rule import factor_symbol
from shardy_py.trace.labels import Labels
from shardy_py.trace.places import at_place
from shardy_py.trace.reasons import Reason
from shardy_py.trace.trace import Trace
from shardy_py.values import frozen


@frozen
class NotSettled:
    """An axis that one more visit of an op would bring; the reference's order ends before it.

    Args:
        op: The op, with its results.
        location: Its place in the source, or "".
        value: The tensor that would get the axis.
        dimension: The dimension that would.
        axis: The axis.
        source: The tensor that has it.
        source_dimension: The dimension that has it.
        factor: The symbol of the factor in the op's rule.
    """

    op: str
    location: str
    value: str
    dimension: int
    axis: str
    source: str
    source_dimension: int
    factor: str

    def __str__(self) -> str:
        ends = f"{self.value} dim {self.dimension} <- {self.source} dim {self.source_dimension} {self.axis}"
        return f"{ends}: through {self.op}{at_place(self.location)}, factor {self.factor}"


def find_unsettled(trace: Trace, labels: Labels) -> Iterator[NotSettled]:
    """Yield the axes that one more visit of an op would bring, in the order of the ops.

    Args:
        trace: The trace.
        labels: The names to use.
    """
    for step in trace.final_visits.unsettled:
        slots, index = trace.slots_and_index(step)
        label = labels.of_step[step]
        if index is None:
            continue
        for _, one in trace.final_refusals(step):
            target = index.slot_dim(slots, one.target, one.factor)
            source = index.slot_dim(slots, one.source, one.factor)
            if one.reason is Reason.NOT_REVISITED and target is not None and source is not None:
                ends = labels.value(target[0]), target[1], str(one.axis), labels.value(source[0]), source[1]
                yield NotSettled(str(label), label.location, *ends, factor_symbol(one.factor))
