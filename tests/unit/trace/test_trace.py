"""Moves and refusals of a run, shardings over time, and the data that a run records."""

from __future__ import annotations

import pytest

pytest.importorskip("jaxlib", reason="the modules are MLIR text")


from shardy_py import Result
from shardy_py.sharding.axes import AxisRef
from shardy_py.trace.history import Cause
from shardy_py.trace.reasons import Reason
from tests.unit.explain.explained import NAMED, sharded, traced
from tests.unit.explain.programs import priorities, product, trace_of


def test_a_refusal_names_candidate_and_obstacle_by_slots() -> None:
    """The columns of the second operand lost to the rows of the first one."""
    trace, slots = product(), product().labels.slots
    (lost,) = [item for item in trace.refusals() if item.reason is Reason.LOST]
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
    places = {slot: [position for item, position in trace.steps_at[slot] if item == step] for slot in slots.values()}
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
    lost = [item for item in trace.refusals() if item.reason is Reason.LOST]
    labels = trace.labels
    assert [(labels.of_step[item.step].name, item.slot_dim[1], str(item.axis), item.place.level) for item in lost] == [
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
    (moment,) = [item for item in history.moments[slots["%arg1"]] if item.cause is Cause.PRIORITY]
    assert moment.time % 2 == 0
    before, after = history.sharding(history.before(slots["%arg1"], moment.time)), history.sharding(moment)
    assert before is not None
    assert after is not None
    assert (before.of_dimension(1).axes, after.of_dimension(1).axes) == ((), (AxisRef("b"),))


REDUCE = f"""func.func @main(%arg0: tensor<8x4xf32> {sharded('[{"a"}, {?}]')}) -> tensor<4xf32> {{
  %cst = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reduce(%arg0 init: %cst) applies stablehlo.maximum across dimensions = [0]
      : (tensor<8x4xf32>, tensor<f32>) -> tensor<4xf32>
  %1 = stablehlo.negate %0 : tensor<4xf32>
  return %0 : tensor<4xf32>
}}"""


def test_the_combiners_of_reductions_are_recorded() -> None:
    """By step and factor; only for steps that reduce."""
    trace = trace_of(REDUCE)
    step = trace.labels.maker(trace.labels.slots["%0"])
    assert {item: set(words.values()) for item, words in trace.reductions.items()} == {step: {"max"}}


def test_the_ops_that_nobody_uses_are_known_to_be_gone() -> None:
    """Their steps are erased."""
    trace = trace_of(REDUCE)
    names = {trace.labels.of_step[step].name for step in trace.erased}
    assert names == {"stablehlo.negate"}
