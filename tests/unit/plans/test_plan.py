"""Plans of small programs, against all shardings of their arguments."""

from __future__ import annotations

import json
from itertools import product

import pytest

pytest.importorskip("jaxlib", reason="the programs are MLIR text")
pytest.importorskip("highspy", reason="plans need the extra 'plan'")

from click.testing import CliRunner

import shardy_py as sdy
from shardy_py.cli.app import shardy
from shardy_py.cost.session import Session

NETWORK = """\
func.func @main(%x: tensor<512x256xf32>, %up: tensor<256x1024xf32>, %down: tensor<1024x128xf32>)
    -> tensor<512x128xf32> {
  %0 = stablehlo.dot_general %x, %up, contracting_dims = [1] x [0]
      : (tensor<512x256xf32>, tensor<256x1024xf32>) -> tensor<512x1024xf32>
  %1 = stablehlo.tanh %0 : tensor<512x1024xf32>
  %2 = stablehlo.dot_general %1, %down, contracting_dims = [1] x [0]
      : (tensor<512x1024xf32>, tensor<1024x128xf32>) -> tensor<512x128xf32>
  return %2 : tensor<512x128xf32>
}
"""
MESH = {"data": 8}


@pytest.fixture(scope="module")
def best_plan():
    """The plan of the network on eight devices."""
    return sdy.plan(NETWORK, MESH, machine="h100-8")


def _priced(text, **options):
    session = Session.open(text, like="passes", **options)
    return session.evaluate(machine="h100-8").cost


def test_no_shardings_of_the_arguments_are_cheaper(best_plan):
    """The plan costs no more than any shardings of the arguments, and the bound lies below all of them."""
    specs = [(None, None), ("data", None), (None, "data")]
    seconds = [
        _priced(NETWORK, mesh=MESH, in_shardings=dict(enumerate(item))).seconds.value
        for item in product(specs, repeat=3)
    ]
    assert best_plan.seconds <= min(seconds) * 1.005
    assert best_plan.bound_seconds is not None, "the estimate does not refute the model"
    assert best_plan.bound_seconds > 0.5 * min(seconds)


def test_the_written_program_costs_what_the_plan_says(best_plan):
    """The text with the plan has its time, bytes and peak."""
    cost = _priced(best_plan.to_mlir())
    assert cost.seconds.value == pytest.approx(best_plan.seconds)
    assert cost.communication_bytes.value == best_plan.sent_bytes
    assert cost.peak_bytes.value == best_plan.peak_bytes


def test_what_is_fixed_stays_and_never_lowers_the_bound(best_plan):
    """A fixed argument keeps its sharding; fewer plans are left."""
    fixed = sdy.plan(NETWORK, MESH, machine="h100-8", fix={"arg1": ("data", None)})
    assert list(fixed.specs.values())[1] == 'P("data", None)'
    assert fixed.bound_seconds >= best_plan.bound_seconds * (1 - 1e-6)


def test_a_budget_is_kept_or_the_error_says_by_how_much(best_plan):
    """Half of the peak is met; a kilobyte is not."""
    small = sdy.plan(NETWORK, MESH, machine="h100-8", budget_memory=best_plan.peak_bytes * 0.75)
    assert small.peak_bytes <= best_plan.peak_bytes * 0.75
    with pytest.raises(sdy.OptionError, match=r"memory budget of .*: even the smallest needs at least .* more"):
        sdy.plan(NETWORK, MESH, machine="h100-8", budget_memory=1000)


def test_the_plan_with_the_least_memory_is_printed_though_it_is_far_dearer():
    """The least memory is found with shardings of the inputs alone, which are dear; as a budget it is met, too."""
    mesh = {"data": 4, "model": 2}
    small = sdy.plan(NETWORK, mesh, machine="h100-8", minimise="memory")
    assert small.peak_bytes < sdy.plan(NETWORK, mesh, machine="h100-8").peak_bytes
    known = [layout.peak_bytes for layout in small.known]
    assert known
    assert small.peak_bytes <= min(known)
    for minimise in ("memory", "time"):
        again = sdy.plan(NETWORK, mesh, machine="h100-8", minimise=minimise, budget_memory=small.peak_bytes)
        assert again.peak_bytes <= small.peak_bytes
    with pytest.raises(sdy.OptionError, match="memory budget of 0 B"):
        sdy.plan(NETWORK, mesh, machine="h100-8", minimise="memory", budget_memory=0)


def test_the_command_prints_all_forms(tmp_path):
    """JSON has the figures, the form for JAX the shardings."""
    path = tmp_path / "p.mlir"
    path.write_text(NETWORK)
    words = ["plan", str(path), "--mesh", "data=8", "--machine", "h100-8", "--form"]
    data = json.loads(CliRunner().invoke(shardy, [*words, "json"]).stdout)
    assert data["seconds"] >= data["bound_seconds"] > 0
    assert "in_shardings = {" in CliRunner().invoke(shardy, [*words, "jax"]).stdout
    assert "Shard(0)" in CliRunner().invoke(shardy, [*words, "torch"]).stdout


def test_the_least_memory_is_reached_though_the_model_has_no_plan_within_it():
    """The linear program may split a node among strategies; what its choice needs is a budget for whole ones.

    As a budget of its own it is out of reach of that program, and the error does not count what is missing.
    """
    jax = pytest.importorskip("jax", reason="the program is traced")

    def look_up(table, rows):
        ordered = jax.numpy.sort(table, axis=0)
        return ordered[rows].at[3].set(1.0), jax.numpy.cumsum(ordered, axis=1)

    kinds = jax.ShapeDtypeStruct((64, 64), "float32"), jax.ShapeDtypeStruct((16,), "int32")
    text = jax.jit(look_up).lower(*kinds).as_text()
    small = sdy.plan(text, {"data": 4, "model": 2}, machine="h100-8", minimise="memory")
    assert small.peak_bytes <= min(layout.peak_bytes for layout in small.known)
    with pytest.raises(sdy.OptionError, match=r"no plan meets the memory budget of [\d.]+ KiB \["):
        sdy.plan(text, {"data": 4, "model": 2}, machine="h100-8", budget_memory=small.peak_bytes)
