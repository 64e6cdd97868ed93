"""What to answer: where one more visit would change a sharding."""

from __future__ import annotations

from collections.abc import Iterator

from shardy_py.explain.answer.explanation import NotSettled
from shardy_py.explain.record.labels import Labels
from shardy_py.explain.record.reason import spot_of
from shardy_py.explain.record.reasons import Code
from shardy_py.explain.record.trace import Trace
from shardy_py.sharding.rule import factor_symbol


def find_unsettled(trace: Trace, labels: Labels) -> Iterator[NotSettled]:
    """Yield the axes that one more visit of an op would bring, in the order of the ops.

    Args:
        trace: The trace.
        labels: The names to use.
    """
    for step in trace.ending.unsettled:
        slots, mappings = trace.shape_of(step)
        label = labels.of_step[step]
        for _, one in trace.stops_of(step):
            target = spot_of(slots, mappings, one.target, one.factor)
            source = spot_of(slots, mappings, one.source, one.factor)
            if one.code is Code.NOT_REVISITED and target is not None and source is not None:
                ends = labels.value(target[0]), target[1], str(one.axis), labels.value(source[0]), source[1]
                yield NotSettled(str(label), label.location, *ends, factor_symbol(one.factor))
