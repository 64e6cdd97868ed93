"""Plans of programs with equal layers: the parts that make them small, each against the whole linear program."""

from __future__ import annotations

import pytest

pytest.importorskip("jaxlib", reason="the programs are MLIR text")
pytest.importorskip("highspy", reason="plans need the extra 'plan'")

import shardy_py as sdy
from shardy_py.plans import ties
from shardy_py.plans.columns import PlanColumns
from shardy_py.plans.messages import PlanBounds
from shardy_py.plans.planning import PlanArguments, _Planner

MESH = {"data": 4, "model": 2}


def _layers(count: int) -> str:
    """A chain of layers of two products with a nonlinear function between, which shrink what they change."""
    wide, tall, x = "tensor<512x2048xbf16>", "tensor<2048x512xbf16>", "tensor<4096x512xbf16>"
    arguments = ", ".join(f"%u{layer}: {wide}, %d{layer}: {tall}" for layer in range(count))
    lines, value = [], "%x"
    for layer in range(count):
        lines += [
            f"%a{layer} = stablehlo.dot_general {value}, %u{layer}, contracting_dims = [1] x [0]"
            f" : ({x}, {wide}) -> tensor<4096x2048xbf16>",
            f"%t{layer} = stablehlo.tanh %a{layer} : tensor<4096x2048xbf16>",
            f"%b{layer} = stablehlo.dot_general %t{layer}, %d{layer}, contracting_dims = [1] x [0]"
            f" : (tensor<4096x2048xbf16>, {tall}) -> {x}",
            f"%y{layer} = stablehlo.add {value}, %b{layer} : {x}",
        ]
        value = f"%y{layer}"
    body = "\n  ".join(lines)
    return f"func.func @main(%x: {x}, {arguments}) -> {x} {{\n  {body}\n  return {value} : {x}\n}}"


def _model(text: str):
    planner = _Planner.of(PlanArguments(text, MESH, machine="h100-8"))
    return planner._model(planner.prices)


def test_bounds_of_messages_are_below_the_optimum_and_near_it():
    """No message raises the bound above the linear program's optimum, and what is left has that optimum."""
    model = _model(_layers(2))
    bounds, every = PlanBounds.of(model), PlanColumns.of(model).solve()
    assert every is not None
    assert 0.98 * every.bound <= bounds.seconds <= every.bound * (1 + 1e-9)
    near = bounds.within(0.03)
    assert near is not None
    assert sum(map(len, near.strategies.values())) < sum(map(len, model.strategies.values()))
    solved = PlanColumns.of(near).solve()
    assert solved is not None
    assert solved.bound == pytest.approx(every.bound, rel=1e-6)


def test_tied_layers_cost_what_free_ones_do(monkeypatch):
    """Equal layers that share their choices have the optimum of layers that do not, with fewer nodes."""
    free = _model(_layers(8))
    monkeypatch.setattr(ties, "_LIMIT", 1)
    tied = _model(_layers(8))
    assert len(tied.strategies) < len(free.strategies) / 1.5
    assert sum(tied.ties.counts.values()) == len(free.strategies)
    optima = [PlanColumns.of(PlanBounds.of(model).within(0.01)).solve().bound for model in (free, tied)]
    assert optima[1] == pytest.approx(optima[0], rel=1e-3)


def test_the_plan_of_tied_layers_says_that_they_are_equal(monkeypatch):
    """The bound is below the plan, and its space says that layers are equal."""
    monkeypatch.setattr(ties, "_LIMIT", 1)
    plan = sdy.plan(_layers(8), MESH, machine="h100-8")
    assert "equal layers have equal shardings" in plan.space
    assert plan.bound_seconds is not None
    assert plan.bound_seconds <= plan.seconds <= plan.bound_seconds * 1.05
    inner = {spec for name, spec in plan.specs.items() if name in {"arg5", "arg7", "arg9", "arg11"}}
    assert len(inner) == 1, "what is around them is equal"


def test_scipy_solves_what_highs_does(monkeypatch):
    """Without highspy the optimum is the same, of all flows and of those near the bound."""
    pytest.importorskip("scipy", reason="the other solver")
    model = _model(_layers(1))
    near = PlanBounds.of(model).within(0.01)
    expected = PlanColumns.of(model).solve()
    assert expected is not None
    monkeypatch.setattr("shardy_py.plans.solve._has_highs", lambda: False)
    for part in (model, near):
        solved = PlanColumns.of(part).solve()
        assert solved is not None
        assert solved.bound == pytest.approx(expected.bound, rel=1e-6)
