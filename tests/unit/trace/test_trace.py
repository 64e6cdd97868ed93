"""Moves and refusals of a run."""

from __future__ import annotations

import pytest

pytest.importorskip("jaxlib", reason="the modules are MLIR text")

from shardy_py import Result
from shardy_py.trace.reasons import Reason
from tests.unit.explain.explained import NAMED, traced
from tests.unit.explain.programs import product


def test_a_refusal_names_candidate_and_obstacle_by_slots() -> None:
    """The columns of the second operand lost to the rows of the first one."""
    trace, slots = product(), product().labels.slots
    (lost,) = [one for one in trace.refusals() if one.reason is Reason.LOST]
    assert lost.slot_dim == (slots["%0"], 1)
    assert lost.source == (slots["%arg1"], 1)
    assert lost.obstacle == (slots["%0"], 0)
    assert trace.deciding_visit(lost) is trace.log.visits[lost.visit]


def test_final_refusals_are_those_of_the_last_visit_where_nothing_changed_since() -> None:
    """With the number of that visit."""
    trace = product()
    step = trace.labels.maker(trace.labels.slots["%0"])
    assert step is not None
    assert trace.final_visits.is_as_left(step)
    assert {number for number, _ in trace.final_refusals(step)} == {trace.visits.numbers_of[step][-1]}


def test_a_step_takes_part_at_each_of_its_tensors() -> None:
    """With the position there: operands, then results."""
    trace, slots = product(), product().labels.slots
    step = trace.labels.maker(slots["%0"])
    places = {slot: [position for one, position in trace.steps_at[slot] if one == step] for slot in slots.values()}
    assert [places[slots[name]] for name in ("%arg0", "%arg1", "%0")] == [[0], [1], [2]]


@pytest.fixture(scope="module")
def result() -> Result:
    """A traced run."""
    return traced(NAMED)


def test_the_trace_lists_updates_and_refusals(result: Result) -> None:
    """Each with where it happened."""
    trace = result.trace
    assert trace is not None
    assert [update.op.name for update in trace.updates][:2] == ["stablehlo.dot_general", "stablehlo.negate"]
    lost = [one for one in trace.refusals() if one.reason is Reason.LOST]
    labels = trace.labels
    assert [(labels.of_step[one.step].name, one.slot_dim[1], str(one.axis), one.place.level) for one in lost] == [
        ("stablehlo.dot_general", 1, '"a"', 2)
    ]
    assert labels.value(lost[0].slot_dim[0]) == "%0"


def test_the_trace_lists_every_axis_that_moved(result: Result) -> None:
    """With value, dimension, op, factor, direction and place; the changes of the updates are made of these."""
    trace = result.trace
    assert trace is not None
    moves = list(trace.moves())
    names = trace.labels
    first = moves[0]
    assert (names.value(first.slot), first.dimension, str(first.axis)) == ("%0", 0, '"a"')
    assert (names.of_step[first.step].name, first.factor, first.direction) == ("stablehlo.dot_general", 0, "forward")
    assert (first.place.user_priority, first.place.level, first.place.strategy.value) == (0, 2, "aggressive")
    gained = 0
    for update in trace.updates:
        for change in update.changes:
            before = sum(len(dim.axes) for dim in change.old.dim_shardings) if change.old else 0
            gained += sum(len(dim.axes) for dim in change.new.dim_shardings) - before
    assert len(moves) == gained > 0
