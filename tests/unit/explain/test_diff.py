"""Two runs side by side."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("jaxlib", reason="the frontend is jaxlib's")

from shardy_py.cost.finishing import changed_slots
from shardy_py.cost.session import Session, session_labels
from shardy_py.cost.sweeps.named_schedules import named_schedules
from shardy_py.cost.sweeps.random_schedules import op_kinds, random_schedules
from shardy_py.errors import OptionError
from shardy_py.explain.answer.find import find_slot
from shardy_py.explain.diff import ScheduleDiff, diff_schedules
from shardy_py.explain.reports import diff_json, format_diff
from shardy_py.oracle.generate import generate
from shardy_py.sharding.axes import AxisRef
from tests.unit.cost.programs import LAYER

LOOP = """\
sdy.mesh @mesh = <["a"=2]>
func.func @main(%x: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>}) -> tensor<8xf32> {
  %n = stablehlo.constant dense<4> : tensor<i32>
  %one = stablehlo.constant dense<1.0> : tensor<8xf32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %0:2 = stablehlo.while(%i = %zero, %y = %x) : tensor<i32>, tensor<8xf32>
  cond {
    %c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %z = stablehlo.add %y, %one : tensor<8xf32>
    %w = stablehlo.add %z, %one : tensor<8xf32>
    stablehlo.return %i, %w : tensor<i32>, tensor<8xf32>
  }
  return %0#1 : tensor<8xf32>
}
"""


def diff(text: str, first: str, second: str) -> ScheduleDiff:
    """Compare two built-in schedules on a module."""
    session = Session.open(text)
    return diff_schedules(session, *named_schedules([first, second]))


def test_the_first_divergent_decision_of_either_run() -> None:
    """By default the sum shards the product by columns; with contractions first the product itself does, by rows."""
    difference = diff(LAYER, "default", "contractions-first")
    default, contractions = difference.divergences
    assert (default.run, default.other) == ("default", "contractions-first")
    assert (default.decision.op, default.decision.value, default.decision.dim) == ("stablehlo.add", "%0", 1)
    assert default.decision.axes == (AxisRef("a"),)
    assert default.decision.level_name == "pass-through ops whose operands have one use"
    assert [item.dim for item in default.other_decisions] == [0]
    assert (contractions.decision.op, contractions.decision.dim) == ("stablehlo.dot_general", 0)
    assert (contractions.decision.level, contractions.decision.level_name) == (0, "contractions")
    assert str(contractions.other_sharding) == '<@mesh, [{?}, {"a", ?}]>'
    assert contractions.decision == default.other_decisions[0]


def test_all_tensors_that_differ_in_the_end_are_listed() -> None:
    """The weights, the product, the sum and the result; the arguments that have a sharding do not change."""
    difference = diff(LAYER, "default", "contractions-first")
    assert {item.value for item in difference.values} == {"%arg1", "%0", "%1", "result0"}
    weights = next(item for item in difference.values if item.value == "%arg1")
    assert (weights.type, str(weights.first), weights.second) == ("tensor<16x4xf32>", '<@mesh, [{?}, {"a", ?}]>', None)
    assert difference.tensors == 6


def test_equal_runs_have_no_difference() -> None:
    """A schedule does not differ from one that leads to the same shardings in another order."""
    difference = diff(LAYER, "default", "elementwise-first")
    assert difference.is_empty
    assert difference.divergences == ()
    assert format_diff(difference) == "default and elementwise-first end alike: 6 tensors"


@pytest.mark.parametrize("seed", range(25))
def test_what_differs_has_a_divergent_decision(seed: int) -> None:
    """Where tensors end differently, a run made a decision that the other does not end with; otherwise none did."""
    session = Session.open(generate(seed))
    kinds = op_kinds(session.problem)
    for first, second in zip(random_schedules(kinds, 4, seed=1), random_schedules(kinds, 4, seed=2), strict=True):
        actual = diff_schedules(session, first, second)
        assert bool(actual.values) == bool(actual.divergences)
        for item in actual.divergences:
            dims = item.other_sharding.dim_shardings if item.other_sharding is not None else ()
            assert not dims or dims[item.decision.dim].axes[: len(item.decision.axes)] != item.decision.axes


def test_the_text_names_runs_decisions_and_tensors() -> None:
    """The first lines say where the runs part, then come the tensors, as many as are wanted."""
    difference = diff(LAYER, "default", "contractions-first")
    lines = format_diff(difference, limit=1).splitlines()
    assert lines[0] == "default: the first decision that contractions-first does not end with"
    assert "stablehlo.add %1 at -:6:8 gives %0" in lines[1]
    assert lines[-1] == "  3 more"
    assert "4 of 6 tensors differ in the end" in lines
    data = json.loads(diff_json(difference))
    assert data["divergences"][0]["decision"]["axes"] == ['"a"']
    assert [item["value"] for item in data["values"]] == [item.value for item in difference.values]


def test_values_of_other_problems_are_not_compared() -> None:
    """Two sessions have nothing to do with each other, even of the same program."""
    first, second = Session.open(LAYER), Session.open(LAYER)
    with pytest.raises(OptionError, match="two different programs"):
        changed_slots(first.solve(), second.solve())


def test_no_sharding_is_the_same_as_an_empty_one() -> None:
    """Open, closed and missing make no difference as long as the same axes are there."""
    session = Session.open(LAYER)
    default, flat = session.solve(), session.solve("flat")
    assert changed_slots(default, default) == []
    slots = changed_slots(default, flat)
    table = session.problem.table.values
    assert len(slots) < sum(a != b for a, b in zip(default.shardings, flat.shardings, strict=True)) + 1
    for slot in slots:
        first, second = table[default.shardings[slot]], table[flat.shardings[slot]]
        assert not (first or second).is_equivalent(second if first else first)  # type: ignore[union-attr]


def test_added_values_have_names_too() -> None:
    """An edge is called as the value it stands for, a copy of a constant after the constant."""
    session = Session.open(LOOP)
    labels = session_labels(session)
    names = {labels.value(slot) for slot in range(len(session.problem.slot_values))}
    assert {"%arg0", "result0", "%0#1", "%cst", "%cst~2"} <= names
    assert not any("data_flow_edge" in name for name in names)


def test_values_have_the_names_that_other_commands_accept() -> None:
    """`find_slot` finds the result of a call in a loop, an argument with a name, and values of functions."""
    body = """sdy.mesh @mesh = <["a"=2]>
    func.func @main(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>} loc("w['up']"))
        -> tensor<8xf32> {
      %n = stablehlo.constant dense<4> : tensor<i32>
      %0:2 = stablehlo.while(%i = %n, %y = %arg0) : tensor<i32>, tensor<8xf32>
      cond {
        %c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %c : tensor<i1>
      } do {
        %1 = func.call @f(%y) : (tensor<8xf32>) -> tensor<8xf32>
        stablehlo.return %i, %1 : tensor<i32>, tensor<8xf32>
      }
      return %0#1 : tensor<8xf32>
    }
    func.func private @f(%x: tensor<8xf32>) -> tensor<8xf32> {
      %0 = stablehlo.negate %x : tensor<8xf32>
      return %0 : tensor<8xf32>
    }"""
    session = Session.open(body, keep_names=True)
    labels = session_labels(session)
    for slot in range(len(session.problem.slot_values)):
        assert find_slot(labels, labels.value(slot)) == slot
    names = {labels.value(slot) for slot in range(len(session.problem.slot_values))}
    assert {"w['up']", "@f:%0"} <= names
    assert not any("named_computation" in name for name in names)
