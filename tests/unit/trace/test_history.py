"""Shardings over time."""

from __future__ import annotations

import pytest

pytest.importorskip("jaxlib", reason="the modules are MLIR text")

from shardy_py.sharding.axes import AxisRef
from shardy_py.trace.history import Cause
from tests.unit.explain.programs import priorities, product


def test_a_tensor_has_the_sharding_of_its_last_moment_before_a_time() -> None:
    """The result has no sharding at the start, and that of the end after the visit that brought it."""
    history, slots = product().history, product().labels.slots
    slot = slots["%0"]
    first, *later = history.moments[slot]
    assert (first.time, first.cause, history.sharding(first)) == (-1, Cause.START, None)
    assert [moment.cause for moment in later] == [Cause.VISIT]
    assert history.before(slot, later[0].time) == first
    assert history.before(slot, later[0].time + 1) == later[0]
    assert history.last(slot) == history.sharding(later[0])
    assert [(moment, before) for moment, before in history.backwards(slot, 10**6)] == [
        (later[0], None),
        (first, None),
    ]


def test_an_axis_of_a_later_priority_arrives_between_visits() -> None:
    """At an even time, with its own cause."""
    history, slots = priorities().history, priorities().labels.slots
    (moment,) = [one for one in history.moments[slots["%arg1"]] if one.cause is Cause.PRIORITY]
    assert moment.time % 2 == 0
    before, after = history.sharding(history.before(slots["%arg1"], moment.time)), history.sharding(moment)
    assert before is not None
    assert after is not None
    assert (before.of_dimension(1).axes, after.of_dimension(1).axes) == ((), (AxisRef("b"),))
