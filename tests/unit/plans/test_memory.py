"""The memory of a plan: copies of resharded tensors and partial results decide what fits."""

from __future__ import annotations

from itertools import product

import pytest

pytest.importorskip("jaxlib", reason="the programs are MLIR text")
pytest.importorskip("highspy", reason="plans need the extra 'plan'")

from attrs import evolve

import shardy_py as sdy
from shardy_py.plans.columns import PlanColumns
from shardy_py.plans.messages import PlanBounds
from shardy_py.plans.planning import PlanArguments, _Planner

X, W, Y = "tensor<64x1024xf32>", "tensor<1024x64xf32>", "tensor<64x64xf32>"
PRODUCT = f"""func.func @main(%x: {X}, %w: {W}) -> {Y} {{
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : ({X}, {W}) -> {Y}
  return %0 : {Y}
}}"""
FIXED = {0: ("data", None), 1: ("data", None)}
KIB = 1024.0
BUDGET = 300 * KIB
"""Less than the arguments, 128 KiB on a device, and a whole copy of w, 256 KiB."""


@pytest.fixture(scope="module")
def model():
    """The model of the product with fixed arguments, under likely prices."""
    planner = _Planner.of(PlanArguments(PRODUCT, {"data": 4}, machine="h100-8", fix=FIXED))
    return planner._model(planner.prices)


def _copy_bytes(model, choice):
    """Return the bytes of the operands that a device receives for the product."""
    product_ = next(node for node in model.graph.nodes if node.op is not None)
    total = 0.0
    for tensor in model.tensors:
        for use in tensor.uses:
            rows = [list(model.strategies[leader]).index(choice[leader]) for leader in (tensor.leader, use.leader)]
            give, need = tensor.gives[rows[0]], use.needs[rows[1]]
            assert use.leader == product_.number
            total += float(model.times.copy_sizes(tensor.rank, [give], [need], use.size)[0, 0])
    return total


def test_a_copy_decides_which_strategy_fits(model):
    """A whole copy of w is the cheapest, but does not fit: x is resharded instead, and a sum is scattered."""
    free, limited = PlanColumns.of(model), PlanColumns.of(model, has_memory=True)
    limited.limit_memory(BUDGET)
    cheapest, fitting = free.solve(), limited.solve()
    assert _copy_bytes(model, cheapest.choice) == 256 * KIB
    assert _copy_bytes(model, fitting.choice) == 64 * KIB
    assert fitting.bound > cheapest.bound


def test_the_least_memory_is_that_of_all_strategies(model):
    """Arguments, copies and the result, or the partial one, are what the linear program counts."""
    sizes = []
    options = {leader: list(strategies) for leader, strategies in model.strategies.items()}
    for chosen in product(*options.values()):
        choice = dict(zip(options, chosen, strict=True))
        node = next(node for node in model.graph.nodes if node.op is not None)
        row = options[node.number].index(choice[node.number])
        partial = 16 * KIB / model.prices.shard_counts(model.strategies[node.number].bases)[row]
        sizes.append(128 * KIB + _copy_bytes(model, choice) + partial)
    columns = PlanColumns.of(model, has_memory=True)
    assert columns.least_memory()[1] == pytest.approx(min(sizes), rel=1e-5)


def test_the_estimated_peak_of_a_plan_meets_the_budget():
    """What the linear program lets fit, fits by the estimator; what it refuses has an error with the difference."""
    arguments = {"mesh": {"data": 4}, "machine": "h100-8", "fix": FIXED, "known_layouts": False}
    small = sdy.plan(PRODUCT, **arguments, budget_memory=BUDGET)
    assert small.peak_bytes <= BUDGET
    assert small.bound_seconds is not None
    with pytest.raises(sdy.OptionError, match=r"even the smallest needs at least .* more"):
        sdy.plan(PRODUCT, **arguments, budget_memory=128 * KIB)


def test_a_shared_copy_lives_between_its_uses():
    """By likely prices a gathered parameter stays until its last use; by strict ones it may be gathered again."""
    text = f"""func.func @main(%x: {X}, %w: {W}) -> {X} {{
      %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : ({X}, {W}) -> {Y}
      %1 = stablehlo.dot_general %0, %0, contracting_dims = [1] x [0] : ({Y}, {Y}) -> {Y}
      %2 = stablehlo.dot_general %1, %w, contracting_dims = [1] x [1] : ({Y}, {W}) -> {X}
      return %2 : {X}
    }}"""
    planner = _Planner.of(PlanArguments(text, {"data": 4}, machine="h100-8", fix=FIXED))
    spans = []
    for prices in (planner.prices, evolve(planner.prices, is_strict=True)):
        near = PlanBounds.of(planner._model(prices)).within(1.0)
        columns = PlanColumns.of(near, has_memory=True)
        w = planner.graph.nodes[1].number
        (of_w,) = (flows for tensor, flows in zip(near.tensors, columns._flows, strict=True) if tensor.leader == w)
        spans.append({tuple(copy.spans) for copy in of_w.copies})
    assert spans[0] == {((0, 0),), ((1, 1),), ((2, 2),)}
    assert spans[1] == {((0, 0),), ((2, 2),)}


def test_one_copy_for_both_operands_of_an_op_counts_once():
    """Two operands that are one tensor may have one copy, so that the least memory has one."""
    text = f"""func.func @main(%x: {Y}) -> {Y} {{
      %0 = stablehlo.dot_general %x, %x, contracting_dims = [1] x [1] : ({Y}, {Y}) -> {Y}
      return %0 : {Y}
    }}"""
    planner = _Planner.of(PlanArguments(text, {"data": 4}, machine="h100-8", fix={0: ("data", None)}))
    columns = PlanColumns.of(planner._model(planner.prices), has_memory=True)
    (of_x,) = columns._flows
    assert [len(use.spans) for use in of_x.uses] == [1, 0]
