"""Parallel plans: a module by its plan computes what it computes without one, or the plan says what no style can."""

from __future__ import annotations

import json
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import shardy_py as sdy
from shardy_py.torch.parallel import Placement, PlanEntry, to_parallel_styles
from tests.torch.models import export
from tests.torch.planned_models import COLUMNS, MODELS, Language, Pair, Planned

pytestmark = pytest.mark.torch
ROOT = Path(__file__).resolve().parents[2]
GATHERED = {"up": "ColwiseParallel(output_layouts=Replicate())", "down": "RowwiseParallel(input_layouts=Replicate())"}
MEGATRON = {"up": "ColwiseParallel()", "down": "RowwiseParallel()"}


def _plan(planned: Planned, count: int = 2) -> tuple[Any, list[sdy.Diagnostic]]:
    model = planned.make().eval()
    warnings: list[sdy.Diagnostic] = []
    result = sdy.propagate(planned.exported(model), {"m": count}, in_shardings=planned.shardings)
    return result.parallelize_plan(axis="m", warnings=warnings), warnings


def test_processes_compute_what_one_does_by_every_plan() -> None:
    """All models, through ``parallelize_module``, on two and four; tied layers go on sharing their weight."""
    command = [sys.executable, "-m", "tests.torch.planned_processes", "2,4"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    collected: dict[str, dict[str, list[dict[str, Any]]]] = json.loads(done.stdout.splitlines()[-1])
    assert list(collected) == ["2", "4"]
    for count, seen in collected.items():
        assert list(seen) == list(MODELS)
        assert all(len(reports) == int(count) for reports in seen.values())
        assert not {name: reports for name, reports in seen.items() if not all(item.get("right") for item in reports)}
        # Table and heads are one DTensor each.
        assert [seen[name][0]["weights"] for name in ("tied", "tied thrice", "apart")] == [2, 3, 3]


@pytest.mark.parametrize(
    "name",
    ["gelu", "turned rows", "rows", "dropped", "input", "core operators", "autocast", "instance", "expanded by -1"],
)
def test_what_runs_on_shards_is_not_gathered(name: str) -> None:
    """Between columns and rows nothing is communicated."""
    plan, warnings = _plan(MODELS[name])
    assert {path: str(entry) for path, entry in plan.items()} == MEGATRON
    assert not warnings
    assert not plan.notes


@pytest.mark.parametrize("name", ["inferred heads", "fewer heads", "crossed"])
def test_heads_whose_number_follows_from_the_shard_stay_sharded(name: str) -> None:
    """-1, flattening, and sizes from the shape of the tensor itself."""
    plan, _ = _plan(MODELS[name])
    actual = {path: str(entry) for path, entry in plan.items()}
    assert actual == {**dict.fromkeys("qkv", "ColwiseParallel()"), "o": "RowwiseParallel()"}


@pytest.mark.parametrize(
    ("name", "op"),
    [
        ("chunk", "split"),
        ("glu", "glu"),
        ("softmax", "softmax"),
        ("normalized", "layer_norm"),
        ("whole", "add"),
        ("mask", "masked_fill"),
        ("two columns", "squeeze"),
        ("divided by size", "mul"),
        ("divided in a function", "div"),
        ("divided by count", "div"),
        ("divided later", "div"),
        ("expanded", "expand"),
        ("groups", "group_norm"),
    ],
)
def test_a_layer_gathers_for_an_op_that_needs_whole_tensors(name: str, op: str) -> None:
    """The note names the layer, the op and its line."""
    plan, _ = _plan(MODELS[name])
    assert {path: str(entry) for path, entry in plan.items()} == GATHERED
    (note,) = plan.notes
    assert (note.code, note.op.split(".")[1].removeprefix("_")) == ("gathered-output", op)
    assert "'up'" in note.message
    assert "planned_models.py:" in note.location


@pytest.mark.parametrize("name", ["fixed heads", "numbers", "merged numbers"])
def test_sizes_that_are_numbers_do_not_fit_shards(name: str) -> None:
    """The note says what to write."""
    plan, _ = _plan(MODELS[name])
    assert str(plan["q"]) == GATHERED["up"]
    assert any("-1 in its place would follow the shard" in note.message for note in plan.notes)


@pytest.mark.parametrize(
    ("name", "parameter", "reason"),
    [
        ("attention", "mha.out_proj.weight", "not a linear layer or an embedding of its own module"),
        ("tied by a function", "emb.weight", "not a linear layer or an embedding of its own module"),
        ("more than a layer", "0.weight", "computes more than its layer"),
        ("conv", "between.weight", "aten.conv1d.default reads it"),
        ("bias read", "up.weight", "aten.add.Tensor reads its bias too"),
        ("adapted", "0.weight", "has the parameter '0.first.weight' too"),
    ],
)
def test_parameters_that_no_style_shards_are_warned_of(name: str, parameter: str, reason: str) -> None:
    """The plan leaves them whole, and says so; also as a warning of Python."""
    plan, warnings = _plan(MODELS[name])
    actual = next(item for item in warnings if item.message.startswith(parameter))
    assert actual.code == "no-style"
    assert reason in actual.message
    assert parameter.rpartition(".")[0] not in plan
    planned = MODELS[name]
    result = sdy.propagate(planned.exported(planned.make().eval()), {"m": 2}, in_shardings=planned.shardings)
    with pytest.warns(UserWarning, match=r"no-style"):
        result.parallelize_plan()


def test_parameters_read_beside_shards_have_partial_gradients() -> None:
    """A module of heads that all processes have: each sees only its own heads."""

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.q, self.norm, self.o = nn.Linear(16, 16), nn.LayerNorm(4), nn.Linear(16, 16)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.o(self.norm(self.q(x).view(2, 8, -1, 4)).flatten(2))

    result = sdy.propagate(export(Model(), torch.ones(2, 8, 16)), {"m": 2}, in_shardings={"q.weight": COLUMNS})
    with pytest.warns(UserWarning, match=r"gradient of norm.weight, norm.bias"):
        assert str(result.parallelize_plan()["q"]) == "ColwiseParallel()"


def test_a_changed_plan_is_verified() -> None:
    """Errors name the op that gets shards, the layer that gets another input, and the path that is no layer."""
    plan, _ = _plan(MODELS["glu"])
    plan.verify()
    with pytest.raises(sdy.VerificationError, match=r"glu.*from up"):
        plan.with_entries({**plan, "up": PlanEntry("colwise")}).verify()
    with pytest.raises(
        sdy.VerificationError, match=r"'down' expects an input that is Shard\(2\), and gets one .* Replicate"
    ):
        plan.with_entries({**plan, "down": PlanEntry("rowwise")}).verify()
    with pytest.raises(sdy.VerificationError, match="along the last dimension only"):
        plan.with_entries({**plan, "up": PlanEntry("colwise", output=Placement("shard", 1))}).verify()
    with pytest.raises(sdy.VerificationError, match="'gate' is not the path of a linear layer"):
        plan.with_entries({**plan, "gate": PlanEntry("colwise")}).verify()


def test_styles_of_tied_layers_serve_several_models() -> None:
    """A second model keeps its own weights."""
    plan, _ = _plan(MODELS["tied thrice"])
    assert set(map(frozenset, plan.tied)) == {frozenset(("emb", "head", "inner.head"))}
    assert "RowwiseParallel" in repr(to_parallel_styles(plan)["emb"])


def test_a_plan_without_shards_is_empty() -> None:
    """Nothing is sharded, nothing is warned of."""
    result = sdy.propagate(export(Pair(F.gelu), torch.ones(2, 8, 16)), {"m": 2})
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        assert dict(result.parallelize_plan()) == {}


def test_a_plan_warns_of_shardings_that_propagation_reduced() -> None:
    """A weight that does not divide is whole before the plan is made, which then has no style for it."""
    exported = export(Pair(F.gelu, inner=31), torch.ones(2, 8, 16))
    result = sdy.propagate(exported, {"m": 2}, in_shardings={"up.weight": COLUMNS})
    with pytest.warns(UserWarning, match=r"up\.weight.*does not divide"):
        plan = result.parallelize_plan()
    assert dict(plan) == {}
    assert [item.code for item in plan.warnings] == ["sharding-reduced"]


def test_plans_of_packed_programs_are_the_same() -> None:
    """What a plan needs of the module travels with the bytes."""
    from shardy_py.torch.frontend import TORCH

    exported = export(Language(3), torch.arange(16).view(2, 8))
    shardings = {"head.weight": COLUMNS, "mlp.up.weight": COLUMNS}
    plans = [
        sdy.propagate(source, {"m": 2}, in_shardings=shardings).parallelize_plan()
        for source in (exported, TORCH.from_bytes(TORCH.to_bytes(exported)))
    ]
    assert dict(plans[0]) == dict(plans[1])
    assert plans[0].tied == plans[1].tied
