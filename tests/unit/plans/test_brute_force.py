"""The linear program of a plan beside all combinations of strategies of a small program."""

from __future__ import annotations

from functools import cache
from itertools import product

import pytest

pytest.importorskip("jaxlib", reason="the programs are MLIR text")
pytest.importorskip("highspy", reason="plans need the extra 'plan'")

from attrs import evolve

from shardy_py.plans.columns import PlanColumns
from shardy_py.plans.latency import longest_path, solve_with_latency
from shardy_py.plans.messages import PlanBounds
from shardy_py.plans.planning import PlanArguments, _Planner

X, UP, HIDDEN, DOWN = "tensor<8x256xf32>", "tensor<256x4096xf32>", "tensor<8x4096xf32>", "tensor<4096x256xf32>"
NETWORK = f"""func.func @main(%x: {X}, %up: {UP}, %down: {DOWN}) -> {X} {{
  %0 = stablehlo.dot_general %x, %up, contracting_dims = [1] x [0] : ({X}, {UP}) -> {HIDDEN}
  %1 = stablehlo.tanh %0 : {HIDDEN}
  %2 = stablehlo.dot_general %1, %down, contracting_dims = [1] x [0] : ({HIDDEN}, {DOWN}) -> {X}
  return %2 : {X}
}}"""


def _model(**prices):
    planner = _Planner.of(PlanArguments(NETWORK, {"data": 4}, machine="h100-8"))
    return planner._model(evolve(planner.prices, **prices))


def _all_costs(model):
    """Yield the seconds of each combination, without and with the latencies along paths that bytes do not count."""
    leaders = list(model.strategies)

    @cache
    def reshard(rank, give, needed, size, kernels):
        return float(model.times.seconds(rank, [give], [needed], [size], kernels)[0, 0])

    for numbers in product(*(range(len(model.strategies[leader])) for leader in leaders)):
        chosen = dict(zip(leaders, numbers, strict=True))
        seconds = sum(float(model.seconds[leader][number]) for leader, number in chosen.items())
        for tensor in model.tensors:
            sizes: dict[int, float] = {}
            for use in tensor.uses:
                needed = int(use.needs[chosen[use.leader]])
                sizes[needed] = min(use.size, sizes.get(needed, use.size))
            give = tensor.gives[chosen[tensor.leader]]
            for needed, size in sizes.items():
                seconds += tensor.count * reshard(tensor.rank, int(give), needed, size, tensor.kernels)
        latencies = {leader: float(model.strategies[leader].latency[number]) for leader, number in chosen.items()}
        counted = sum(float(model.strategies[leader].counted[number]) for leader, number in chosen.items())
        path = sum(latencies[node] for node in longest_path(model.graph, latencies))
        yield seconds, seconds + max(0.0, path - counted)


@pytest.mark.parametrize("prices", [{}, {"is_strict": True, "is_combined": True}], ids=["likely", "strict"])
def test_the_linear_program_has_the_optimum_of_all_combinations(prices):
    """Strategies and shared reshards cost in the program what they cost one by one."""
    model = _model(**prices)
    solved = PlanColumns.of(model).solve()
    assert solved is not None
    assert solved.bound == pytest.approx(min(seconds for seconds, _ in _all_costs(model)), rel=1e-5)


def test_latencies_along_paths_raise_the_bound_to_that_of_all_combinations():
    """Sums in series have all of their latency, and no combination costs less than the bound."""
    model = _model(is_strict=True, is_combined=True)
    bounds = PlanBounds.of(model)
    without, solved = PlanColumns.of(model).solve(), solve_with_latency(PlanColumns.of(bounds.within(2.0)))
    least = min(seconds for _, seconds in _all_costs(model))
    assert without is not None
    assert solved is not None
    assert without.bound * 1.05 < solved.bound <= least * (1 + 1e-6)
    assert solved.bound == pytest.approx(least, rel=0.05)


def test_messages_that_go_on_with_other_prices_are_those_prices():
    """Bounds after a change of prices lie below the optimum of the new ones, near the bounds made anew."""
    strict = _model(is_strict=True, is_combined=True)
    likely = strict.with_prices(evolve(strict.prices, is_strict=False, is_combined=False))
    changed, anew = PlanBounds.of(strict).with_prices(likely), PlanBounds.of(likely)
    solved = PlanColumns.of(likely).solve()
    assert solved is not None
    assert changed.seconds <= solved.bound * (1 + 1e-6)
    assert changed.seconds == pytest.approx(anew.seconds, rel=0.01)
