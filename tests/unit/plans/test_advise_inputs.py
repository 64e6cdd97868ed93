"""Advice for inputs: a plan and known layouts, with what they cost as they are written."""

from __future__ import annotations

import sys

import pytest
from attrs import evolve

pytest.importorskip("jaxlib", reason="the programs are MLIR text")
pytest.importorskip("highspy", reason="plans need the extra 'plan'")

import shardy_py as sdy
from shardy_py.cost.machines.toml import get_machine
from shardy_py.cost.session import Session
from shardy_py.plans.advise_inputs import advise_inputs

NETWORK = """\
func.func @main(%x: tensor<64x128xf32>, %up: tensor<128x512xf32>, %down: tensor<512x128xf32>) -> tensor<64x128xf32> {
  %0 = stablehlo.dot_general %x, %up, contracting_dims = [1] x [0]
      : (tensor<64x128xf32>, tensor<128x512xf32>) -> tensor<64x512xf32>
  %1 = stablehlo.tanh %0 : tensor<64x512xf32>
  %2 = stablehlo.dot_general %1, %down, contracting_dims = [1] x [0]
      : (tensor<64x512xf32>, tensor<512x128xf32>) -> tensor<64x128xf32>
  return %2 : tensor<64x128xf32>
}
"""
MESH = {"data": 2, "model": 2}


@pytest.fixture(scope="module")
def advice():
    """Advice for the network on four devices."""
    return advise_inputs(NETWORK, MESH, machine="cpu-8")


def test_the_plan_and_known_layouts_stand_beside_each_other(advice):
    """Megatron has the first weights by columns, the second ones by rows; the plan is one of the layouts."""
    weights = [list(item.specs.values())[1:] for item in advice.layouts]
    assert ['P(None, "model")', 'P("model", None)'] in weights
    assert "data parallel" in [item.name for item in advice.layouts]
    plan = sdy.plan(NETWORK, MESH, machine="cpu-8")
    assert plan.title in [item.name.removesuffix(", inputs alone") for item in advice.layouts]
    assert plan.specs in [item.specs for item in advice.layouts]


def test_layouts_cost_what_they_say(advice):
    """Given as shardings of the arguments, a layout without constraints leads to its figures."""
    alone = [item for item in advice.layouts if not item.constraint_count]
    assert len(alone) > 2
    for item in alone:
        session = Session.open(NETWORK, MESH, in_shardings=dict(item.shardings))
        cost = session.evaluate(machine="cpu-8").cost
        assert (cost.communication_bytes.value, cost.seconds.value) == (item.figures.bytes, item.figures.seconds)


def test_the_written_program_costs_what_the_plan_says():
    """The text with the plan and its constraints, read again, has the figures of the layout with constraints."""
    advice = advise_inputs(NETWORK, MESH, machine="cpu-8", minimise="memory")
    best = advice.best
    cost = Session.open(advice.text).evaluate(machine="cpu-8").cost
    assert best.constraint_count
    assert (cost.communication_bytes.value, cost.peak_bytes.value) == (best.figures.bytes, best.figures.peak_bytes)


def test_layouts_are_sorted_by_the_goal(advice):
    """The best layout comes first; with less memory as the goal the one with the least."""
    seconds = [item.figures.seconds for item in advice.layouts]
    assert seconds == sorted(seconds)
    assert advice.best is advice.layouts[0]
    small = advise_inputs(NETWORK, MESH, machine="cpu-8", minimise="memory")
    assert small.best.figures.peak_bytes <= min(item.figures.peak_bytes for item in advice.layouts)
    assert small.best.figures.peak_bytes < advice.best.figures.peak_bytes


def test_the_shardings_of_the_program_are_a_layout_too():
    """What the user gave is listed beside what was planned, with its own figures."""
    given = {0: ("data", None)}
    actual = advise_inputs(NETWORK, MESH, in_shardings=given, machine="cpu-8")
    layout = next(item for item in actual.layouts if item.name == "as it is")
    cost = Session.open(NETWORK, MESH, in_shardings=given).evaluate(machine="cpu-8").cost
    assert layout.figures.seconds == cost.seconds.value
    assert next(iter(layout.specs.values())) == 'P("data", None)'


def test_a_program_without_a_mesh_is_refused():
    """There is nothing to shard over."""
    with pytest.raises(sdy.OptionError, match="no mesh"):
        advise_inputs(NETWORK, machine="cpu-8")


def test_one_device_leaves_all_replicated():
    """A layout has a name, though there is no axis to shard over."""
    assert advise_inputs(NETWORK, {"data": 1}, machine="cpu-8").best.name == "replicated"


def _stack(kinds) -> str:
    arguments = ", ".join(
        f"%a{index}: {kind} loc(\"w[{index // 2}]['w{index % 2 + 1}']\")" for index, kind in enumerate(kinds)
    )
    results, types = ", ".join(f"%a{index}" for index in range(len(kinds))), ", ".join(kinds)
    return f"func.func @main({arguments}) -> ({types}) {{\n  return {results} : {types}\n}}\n"


@pytest.mark.parametrize("types", [("8x16", "16x8"), ("8x8", "8x8")], ids=["of other types", "of one type"])
def test_the_parameters_of_a_layer_have_rows_of_their_own(types):
    """The number in ``w1`` is a part of the name; the index of the layer is not."""
    kinds = [f"tensor<{size}xf32>" for size in (*types, *types)]
    actual = advise_inputs(_stack(kinds), MESH, machine="cpu-8")
    assert list(actual.best.specs) == ["w[*]['w1']", "w[*]['w2']"]


def test_a_budget_out_of_reach_is_an_error():
    """The error says by how much the smallest plan exceeds the memory."""
    with pytest.raises(sdy.OptionError, match=r"memory budget of 1000 B: .* which is .* more"):
        advise_inputs(NETWORK, MESH, machine="cpu-8", budget_memory=1000.0)


def test_the_memory_of_the_machine_is_a_budget(advice):
    """Where the fastest plan does not fit the machine, the plan is the fastest that does."""
    peaks = sorted(item.figures.peak_bytes for item in advice.layouts)
    limit = (peaks[0] + advice.best.figures.peak_bytes) / 2
    assert limit < advice.best.figures.peak_bytes
    machine = evolve(get_machine("cpu-8"), memory_bytes=limit)
    assert advise_inputs(NETWORK, MESH, machine=machine).best.figures.peak_bytes <= limit


def test_without_a_solver_the_error_says_what_to_install(monkeypatch):
    """Nothing is searched in place of a plan."""
    monkeypatch.setitem(sys.modules, "highspy", None)
    monkeypatch.setitem(sys.modules, "scipy.optimize", None)
    with pytest.raises(sdy.UnsupportedError, match=r"shardy_py\[plan\]"):
        advise_inputs(NETWORK, MESH, machine="cpu-8")
    advised = sdy.advise(NETWORK, MESH, machine="cpu-8")
    assert advised.inputs is None
    assert "no-solver" in [item.code for item in advised.warnings]


def test_shardings_are_in_the_words_of_the_frontend(advice):
    """For a program that JAX knows nothing of they are what `propagate` takes."""
    item = next(item for item in advice.layouts if 'P("model", None)' in item.specs.values())
    assert [line.partition(": ")[2] for line in item.lines] == list(item.specs.values())
    written = evolve(item, frontend="graph").lines
    assert "('model', None)" in [line.partition(": ")[2] for line in written]
