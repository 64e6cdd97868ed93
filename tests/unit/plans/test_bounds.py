"""What strict prices charge: never more than the estimator for any shardings of the arguments."""

from __future__ import annotations

from itertools import product

import pytest

pytest.importorskip("jaxlib", reason="the programs are MLIR text")
pytest.importorskip("highspy", reason="plans need the extra 'plan'")

import shardy_py as sdy
from shardy_py.cost.session import Session
from shardy_py.plans.latency import longest_path
from shardy_py.plans.planning import PlanArguments, _Planner

MESH = {"data": 4}
X, W, LOGITS, COLUMN = "tensor<256x64xf32>", "tensor<64x4096xf32>", "tensor<256x4096xf32>", "tensor<256x1xf32>"
NORM = f"""func.func @main(%x: {X}, %w: {W}) -> tensor<f32> {{
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : ({X}, {W}) -> {LOGITS}
  %1 = stablehlo.exponential %0 : {LOGITS}
  %2 = stablehlo.reduce(%1 init: %zero) applies stablehlo.add across dimensions = [1]
      : ({LOGITS}, tensor<f32>) -> tensor<256xf32>
  %3 = stablehlo.broadcast_in_dim %2, dims = [0] : (tensor<256xf32>) -> {LOGITS}
  %4 = stablehlo.divide %1, %3 : {LOGITS}
  %5 = stablehlo.multiply %4, %3 : {LOGITS}
  %6 = stablehlo.log %5 : {LOGITS}
  %7 = stablehlo.slice %6 [0:256, 0:1] : ({LOGITS}) -> {COLUMN}
  %8 = stablehlo.reduce(%7 init: %zero) applies stablehlo.add across dimensions = [0, 1]
      : ({COLUMN}, tensor<f32>) -> tensor<f32>
  return %8 : tensor<f32>
}}"""


@pytest.fixture(scope="module")
def planner():
    """What plans the program."""
    return _Planner.of(PlanArguments(NORM, MESH, machine="h100-8"))


def test_the_bound_is_below_all_shardings_of_the_arguments():
    """Kernels that are fused across a sum, and sums in series, are not charged twice."""
    plan = sdy.plan(NORM, MESH, machine="h100-8")
    specs = [(None, None), ("data", None), (None, "data")]
    seconds = [
        Session.open(NORM, mesh=MESH, in_shardings=dict(enumerate(pair)), like="passes")
        .evaluate(machine="h100-8")
        .cost.seconds.value
        for pair in product(specs, repeat=2)
    ]
    assert plan.bound_seconds is not None
    assert 0.5 * min(seconds) < plan.bound_seconds <= min(seconds) * (1 + 1e-6)


def test_a_broadcast_with_several_users_has_a_sharding_of_its_own(planner):
    """It is sent to users that need another one, so it is a node; with one user it is a view."""
    assert "stablehlo.broadcast_in_dim" in [node.name for node in planner.graph.nodes]
    once = NORM.replace("%5 = stablehlo.multiply %4, %3", "%5 = stablehlo.multiply %4, %4")
    names = [node.name for node in _Planner.of(PlanArguments(once, MESH, machine="h100-8")).graph.nodes]
    assert "stablehlo.broadcast_in_dim" not in names


def test_only_sums_of_one_path_are_in_series(planner):
    """Both reductions are on one path; what no path joins counts for the longer one only."""
    numbers = {node.number: node for node in planner.graph.nodes if node.name == "stablehlo.reduce"}
    assert set(longest_path(planner.graph, dict.fromkeys(numbers, 1.0))) == set(numbers)
    assert longest_path(planner.graph, {0: 1.0, 1: 2.0}) == [1]


def test_products_of_small_types_take_the_time_of_these():
    """A product of int8 whose results are int32 is bounded by the operations of int8, as the estimator has it."""
    left, right, out = "tensor<4096x4096xi8>", "tensor<4096x4096xi8>", "tensor<4096x4096xi32>"
    product = f"stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : ({left}, {right}) -> {out}"
    text = f"func.func @main(%x: {left}, %w: {right}) -> {out} {{\n  %0 = {product}\n  return %0 : {out}\n}}"
    plan = sdy.plan(text, MESH, machine="h100-8", known_layouts=False)
    assert plan.gap is not None
    assert plan.gap < 0.01


BATCH, UP, HIDDEN, DOWN = (
    "tensor<1024x512xf32>",
    "tensor<512x2048xf32>",
    "tensor<1024x2048xf32>",
    "tensor<2048x512xf32>",
)
STEP = f"""func.func @main(%x: {BATCH}, %y: {BATCH}, %up: {UP}, %down: {DOWN}) -> ({UP}, {DOWN}) {{
  %0 = stablehlo.dot_general %x, %up, contracting_dims = [1] x [0] : ({BATCH}, {UP}) -> {HIDDEN}
  %1 = stablehlo.tanh %0 : {HIDDEN}
  %2 = stablehlo.dot_general %1, %down, contracting_dims = [1] x [0] : ({HIDDEN}, {DOWN}) -> {BATCH}
  %3 = stablehlo.subtract %2, %y : {BATCH}
  %4 = stablehlo.dot_general %1, %3, contracting_dims = [0] x [0] : ({HIDDEN}, {BATCH}) -> {DOWN}
  %5 = stablehlo.dot_general %3, %down, contracting_dims = [1] x [1] : ({BATCH}, {DOWN}) -> {HIDDEN}
  %6 = stablehlo.multiply %5, %1 : {HIDDEN}
  %7 = stablehlo.dot_general %x, %6, contracting_dims = [0] x [0] : ({BATCH}, {HIDDEN}) -> {UP}
  %8 = stablehlo.subtract %up, %7 : {UP}
  %9 = stablehlo.subtract %down, %4 : {DOWN}
  return %8, %9 : {UP}, {DOWN}
}}"""


def test_the_kernel_of_a_view_may_run_before_what_it_makes_is_gathered():
    """A tanh that is gathered is computed on more devices than its use needs; the bound of a training step has that."""
    plan = sdy.plan(STEP, {"data": 4, "model": 2}, machine="h100-8", known_layouts=False)
    assert plan.gap is not None
    assert plan.gap < 0.02


STATE, WEIGHT = "tensor<64x4096xf32>", "tensor<4096x4096xf32>"
LOOP = f"""func.func @main(%h: {STATE}, %w: {WEIGHT}) -> {STATE} {{
  %start = stablehlo.constant dense<0> : tensor<i32>
  %0:2 = stablehlo.while(%i = %start, %carried = %h) : tensor<i32>, {STATE}
    cond {{
      %end = stablehlo.constant dense<4> : tensor<i32>
      %1 = stablehlo.compare LT, %i, %end : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %1 : tensor<i1>
    }} do {{
      %one = stablehlo.constant dense<1> : tensor<i32>
      %1 = stablehlo.add %i, %one : tensor<i32>
      %2 = stablehlo.dot_general %carried, %w, contracting_dims = [1] x [0] : ({STATE}, {WEIGHT}) -> {STATE}
      %3 = stablehlo.tanh %2 : {STATE}
      %4 = stablehlo.dot_general %3, %w, contracting_dims = [1] x [0] : ({STATE}, {WEIGHT}) -> {STATE}
      stablehlo.return %1, %4 : tensor<i32>, {STATE}
    }}
  return %0#1 : {STATE}
}}"""


def test_a_loop_sums_and_reshards_in_every_run():
    """What stands in a loop counts as often as it runs, in the plan's costs and in the bound; the rest counts once."""
    planner = _Planner.of(PlanArguments(LOOP, MESH, machine="h100-8"))
    runs = {(node.name, planner.prices.runs(planner.graph, node)) for node in planner.graph.nodes}
    assert {("arg1", 1.0), ("stablehlo.dot_general", 4.0)} <= runs
    counts = {
        planner.graph.nodes[tensor.leader].name: tensor.count for tensor in planner._model(planner.prices).tensors
    }
    assert counts["arg1"] == 1
    assert counts["stablehlo.dot_general"] == 4
    plan = sdy.plan(LOOP, MESH, machine="h100-8", known_layouts=False)
    assert plan.gap is not None
    assert 0 <= plan.gap < 0.5
