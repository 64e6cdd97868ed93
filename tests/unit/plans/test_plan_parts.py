"""The parts of a plan: which results are states, what axes do, which shardings inside are needed."""

from __future__ import annotations

import pytest

pytest.importorskip("jaxlib", reason="the programs are MLIR text")
pytest.importorskip("highspy", reason="plans need the extra 'plan'")

import shardy_py as sdy
from shardy_py.cost.session import Session
from shardy_py.plans.fewest import fewest_pins
from shardy_py.plans.planning import PlanArguments, _Planner

MESH = {"data": 8}
SQUARE = "tensor<1024x1024xf32>"
INFERENCE = f"""\
func.func @main(%x: {SQUARE}, %w: {SQUARE}) -> {SQUARE} {{
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : ({SQUARE}, {SQUARE}) -> {SQUARE}
  return %0 : {SQUARE}
}}
"""
STEP = f"""\
func.func @main(%x: {SQUARE}, %w: {SQUARE}{{DONATED}}) -> {SQUARE} {{
  %0 = stablehlo.dot_general %x, %x, contracting_dims = [0] x [0] : ({SQUARE}, {SQUARE}) -> {SQUARE}
  %1 = stablehlo.subtract %w, %0 : {SQUARE}
  return %1 : {SQUARE}
}}
"""


def _states(text: str) -> dict[int, str]:
    planner = _Planner.of(PlanArguments(text, MESH, machine="h100-8"))
    return {number: planner.graph.nodes[node].name for number, node in planner.tied.items()}


def test_a_result_of_a_type_alone_is_no_state():
    """A product has the type of both arguments and continues neither; what subtracts from one does."""
    assert _states(INFERENCE) == {}
    assert _states(STEP.replace("{DONATED}", "")) == {0: "arg1"}


def test_a_donated_argument_is_the_state():
    """An alias says of which argument a result takes the place."""
    donated = INFERENCE.replace("%x: " + SQUARE, "%x: " + SQUARE + " {tf.aliasing_output = 0 : i32}")
    assert _states(donated) == {0: "arg0"}


def test_gradients_are_matched_by_type():
    """Several results that are made of no argument have the arguments of their types, in order."""
    text = f"""func.func @main(%w: {SQUARE}, %v: {SQUARE}) -> ({SQUARE}, {SQUARE}) {{
  %0 = stablehlo.dot_general %v, %w, contracting_dims = [0] x [0] : ({SQUARE}, {SQUARE}) -> {SQUARE}
  %1 = stablehlo.dot_general %0, %w, contracting_dims = [0] x [0] : ({SQUARE}, {SQUARE}) -> {SQUARE}
  return %0, %1 : {SQUARE}, {SQUARE}
}}"""
    assert _states(text) == {0: "arg0", 1: "arg1"}


@pytest.mark.parametrize(
    ("specs", "role"),
    [
        ({"arg0": ("data", None), "arg1": (None, None)}, {"batch": ("arg0",)}),
        ({"arg0": (None, None), "arg1": (None, "data")}, {"tensor (columns)": ("arg1",)}),
        (
            {"arg0": (None, "data"), "arg1": ("data", None)},
            {"split along a sum": ("arg0",), "tensor (rows)": ("arg1",)},
        ),
        ({"arg0": ("data", None), "arg1": ("data", None)}, {"batch": ("arg0",), "fully sharded": ("arg1",)}),
    ],
)
def test_an_axis_is_named_by_the_factor_that_it_is_on(specs, role):
    """Rows of x are a batch; of w, what is summed is its rows, what is kept its columns, what is gathered neither."""
    plan = sdy.plan(INFERENCE, MESH, machine="h100-8", fix=specs)
    assert plan.roles["data"] == role
    assert all(f"{name}: {', '.join(names)}" in str(plan) for name, names in role.items())


def test_only_what_is_needed_is_left():
    """Of ten pins the two that count remain, whatever the order; with no trials all do."""
    pins = list(range(10))

    def price(rest):
        return len(rest) if {3, 8} <= set(rest) else None

    pinned, outcome = fewest_pins(pins, 10, price, trials=100)
    assert (list(pinned), outcome) == ([3, 8], 2)
    assert fewest_pins(pins, 10, price, trials=0) == (pins, 10)


@pytest.fixture(scope="module")
def step():
    """A step of two experts whose weights continue, on two axes."""
    weights, tokens = "tensor<8x256x512xf32>", "tensor<8x1024x256xf32>"
    text = f"""func.func @main(%x: {tokens}, %w: {weights}) -> {weights} {{
  %0 = stablehlo.dot_general %x, %w, batching_dims = [0] x [0], contracting_dims = [2] x [1]
      : ({tokens}, {weights}) -> tensor<8x1024x512xf32>
  %1 = stablehlo.dot_general %x, %0, batching_dims = [0] x [0], contracting_dims = [1] x [1]
      : ({tokens}, tensor<8x1024x512xf32>) -> {weights}
  %2 = stablehlo.subtract %w, %1 : {weights}
  return %2 : {weights}
}}"""
    return sdy.plan(text, {"data": 4, "model": 2}, machine="h100-8")


def test_known_layouts_stand_beside_a_plan_and_are_not_cheaper(step):
    """Each says by how much it is slower, and of experts there is one."""
    names = [layout.name for layout in step.known]
    assert {"data parallel", "fully sharded", "tensor parallel", "expert parallel"} <= set(names)
    assert all(layout.seconds >= step.seconds for layout in step.known)
    assert step.known[-1].reason.startswith("+")
    assert f"beside it, {step.known[0]}" in str(step)


def test_data_parallel_parameters_are_whole_and_their_gradients_summed(step):
    """Of the known layouts it holds all parameters on each device, and sends their gradients."""
    layouts = {layout.name: layout for layout in step.known}
    assert layouts["data parallel"].peak_bytes > layouts["expert parallel"].peak_bytes
    assert layouts["data parallel"].sent_bytes > layouts["expert parallel"].sent_bytes


def test_the_local_program_sends_what_the_plan_says(step):
    """The text with the plan, read anew, becomes a local program whose collectives send the plan's bytes."""
    fixed = sdy.plan(INFERENCE, MESH, machine="h100-8", fix={"arg0": (None, "data"), "arg1": ("data", None)})
    assert fixed.sent_bytes > 0
    for plan in (fixed, step):
        evaluation = Session.open(plan.to_mlir(), like="passes").evaluate(machine="h100-8", partitioner="shardy_py")
        assert evaluation.cost.communication_bytes.value == plan.sent_bytes


def test_a_plan_of_empty_tensors_takes_no_time():
    """Known layouts stand beside it, none slower by a part of nothing."""
    empty, data = "tensor<0x8xf32>", "tensor<16x16xf32>"
    plan = sdy.plan(
        f"""func.func @main(%p: {empty}, %x: {data}) -> {empty} {{
  %0 = stablehlo.add %p, %p : {empty}
  return %0 : {empty}
}}""",
        {"data": 4},
        machine="h100-8",
    )
    assert plan.seconds == 0
    assert {layout.reason.split(",")[0] for layout in plan.known} == {"+0.0%"}
