"""Advice for inputs: layouts by the roles of axes."""

from __future__ import annotations

import pytest
from attrs import evolve

pytest.importorskip("jaxlib", reason="the programs are MLIR text")

import shardy_py as sdy
from shardy_py.cost.advice import advise_inputs as inputs_advice
from shardy_py.cost.advice.advise_inputs import advise_inputs
from shardy_py.cost.advice.layouts import closed_sharding, name_layout
from shardy_py.cost.session import Session

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


def _layout(advice, **roles):
    return next(item for item in advice.layouts if item.roles == roles)


def test_the_batch_is_what_divides_the_work(advice):
    """Data parallelism splits the first dimension of the argument that all ops depend on, and no parameter."""
    actual = _layout(advice, data="data", model="data")
    assert actual.name == "data parallel over data and model"
    assert list(actual.specs.values()) == ['P(("data", "model"), None)', "P(None, None)", "P(None, None)"]


def test_tensor_parallelism_is_that_of_megatron(advice):
    """The first weights are split by columns, the second ones by rows, so that only the last product is reduced."""
    actual = _layout(advice, data="data", model="tensor")
    assert list(actual.specs.values()) == ['P("data", None)', 'P(None, "model")', 'P("model", None)']


def test_shardings_are_in_the_words_of_the_frontend(advice):
    """For a program that JAX knows nothing of they are what `propagate` takes."""
    actual = _layout(advice, data="data", model="tensor")
    assert [line.partition(": ")[2] for line in advice.lines_of(actual)] == list(actual.specs.values())
    written = evolve(advice, frontend="graph").lines_of(actual)
    assert [line.partition(": ")[2] for line in written] == ["('data', None)", "(None, 'model')", "('model', None)"]


def test_fully_sharded_parameters_have_every_axis(advice):
    """Each parameter is split over all axes that are fully sharded, as is the batch."""
    actual = _layout(advice, data="fsdp", model="fsdp")
    assert all("data" in spec and "model" in spec for spec in actual.specs.values())


def test_layouts_cost_what_they_say(advice):
    """Given as shardings of the arguments, a layout leads to its figures."""
    for item in advice.layouts:
        session = Session.open(NETWORK, MESH, in_shardings=list(item.shardings.values()))
        cost = session.evaluate(machine="cpu-8", partitioner="xla").cost
        assert cost.communication_bytes.value == item.figures.bytes


def test_layouts_are_sorted_by_the_goal(advice):
    """The best layout comes first."""
    seconds = [item.figures.seconds for item in advice.layouts]
    assert seconds == sorted(seconds)
    assert advice.best is advice.layouts[0]


def test_the_shardings_of_the_program_are_a_layout_too():
    """What the user gave is listed beside what was found."""
    actual = advise_inputs(NETWORK, MESH, in_shardings={0: ("data", None)}, trials=5)
    assert "as it is" in [item.name for item in actual.layouts]


def test_a_program_without_a_mesh_is_refused():
    """There is nothing to shard over."""
    with pytest.raises(sdy.OptionError, match="no mesh"):
        advise_inputs(NETWORK)


def _stack(kinds) -> str:
    arguments = ", ".join(
        f"%a{index}: {kind} loc(\"w[{index // 2}]['w{index % 2 + 1}']\")" for index, kind in enumerate(kinds)
    )
    results, types = ", ".join(f"%a{index}" for index in range(len(kinds))), ", ".join(kinds)
    return f"func.func @main({arguments}) -> ({types}) {{\n  return {results} : {types}\n}}\n"


@pytest.mark.parametrize("types", [("8x16", "16x8"), ("8x8", "8x8")], ids=["of other types", "of one type"])
def test_the_parameters_of_a_layer_are_groups_of_their_own(types):
    """The number in ``w1`` is a part of the name; the index of the layer is not."""
    kinds = [f"tensor<{size}xf32>" for size in (*types, *types)]
    actual = advise_inputs(_stack(kinds), MESH, trials=3)
    assert list(actual.best.shardings) == ["w[*]['w1']", "w[*]['w2']"]


def test_a_budget_out_of_reach_is_told(advice):
    """The advice says by how much the best layout exceeds the memory; one that fits has nothing to say."""
    tight = advise_inputs(NETWORK, MESH, machine="cpu-8", budget_memory=1000.0, trials=5)
    assert tight.problem is not None
    assert "memory budget of 1000 B" in tight.problem.message
    assert tight.problem.message in str(tight)
    assert advice.problem is None


@pytest.mark.parametrize(
    ("data", "parameter", "name"),
    [
        ((("x",), ()), ((), ()), "data parallel over x, replicated over y"),
        ((("x",), ()), (("x",), ("y",)), "fully sharded over x, tensor parallel over y"),
        (((), ()), ((), ()), "replicated over x and y"),
    ],
)
def test_a_layout_is_called_by_what_each_axis_splits(data, parameter, name):
    """An axis along which no parameter is split is never called tensor parallel."""
    shardings = [closed_sharding(spec, "mesh") for spec in (data, parameter)]
    assert name_layout(shardings[:1], shardings[1:], ("x", "y")) == name


def test_the_shardings_of_a_plan_are_one_more_layout(advice, monkeypatch):
    """With a solver there is no worse layout than without, and the plan is priced like the others."""
    pytest.importorskip("highspy")
    monkeypatch.setattr(inputs_advice, "find_spec", lambda name: None)
    searched = advise_inputs(NETWORK, MESH, machine="cpu-8")
    assert advice.best.figures.seconds <= searched.best.figures.seconds
    specs = [layout.specs for layout in advice.layouts]
    assert list(sdy.plan(NETWORK, MESH, machine="cpu-8").specs.values()) in [
        list(layout_specs.values()) for layout_specs in specs
    ]
