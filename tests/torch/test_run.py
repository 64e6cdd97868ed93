"""Programs of PyTorch on shards: on four processes, and simulated in one."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import shardy_py as sdy
from shardy_py.torch.parallel import explicit_program, make_local_torch_program
from tests.torch.models import export
from tests.torch.test_import import Flow, Map, Scan

pytestmark = pytest.mark.torch
ROOT = Path(__file__).resolve().parents[2]


def test_four_processes_compute_what_one_does() -> None:
    """Also where the batch does not divide, or sizes are dynamic; as many collectives run as were predicted."""
    command = [sys.executable, "-m", "tests.torch.processes", "4", "5"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    collected = json.loads(done.stdout.splitlines()[-1])
    assert [len(collected[batch]) for batch in ("4", "5")] == [4, 4]
    for seen in (*collected["4"], *collected["5"]):
        assert seen["distance"] <= 1e-5
        assert seen["ran"] == seen["predicted"]
        assert seen["combined"]
        # The cache stays where it is: statistics of the softmax and the result of the heads are exchanged, and a row.
        assert seen["cache"]["distance"] <= 1e-5
        assert seen["cache"]["ran"] == seen["cache"]["predicted"]
        assert set(seen["cache"]["ran"]) == {"all_reduce"}
        # Parameters require gradients: the call that is not under no_grad says that none are recorded.
        assert seen["warned"] == 1
        assert seen["placements"] == ["R", "S(1)"]
    # One graph for the example, one for all larger batches and lengths, and one for sizes of one.
    for seen in collected["dynamic"]:
        assert seen["distance"] <= 1e-5
        assert seen["graphs"] == 3


@pytest.mark.parametrize("model", ["flow", "scan", "map"])
def test_control_flow_runs_on_shards(model: str) -> None:
    """Branches, loops, scans and maps give what one process gives."""
    module, tensors, spec = {
        "flow": (Flow(), (torch.randn(5, 4),), ("x",)),
        "scan": (Scan(), (torch.randn(3, 5, 4), torch.randn(4, 4)), (None, "x")),
        "map": (Map(), (torch.randn(3, 5, 4), torch.randn(4, 4)), (None, "x")),
    }[model]
    exported = export(module, *tensors)
    result = sdy.propagate(exported, {"x": 2}, in_shardings={"x": spec})
    local = make_local_torch_program(explicit_program(result.program, result.registry), result.registry)
    state = {**exported.state_dict, **exported.constants}
    inputs = iter(tensors)
    arguments = [next(inputs) if item.kind == "input" else state[item.name] for item in local.origin.arguments]
    torch.testing.assert_close(local.simulate(*arguments)[0], module(*tensors))


def test_another_device_mesh_is_refused() -> None:
    """The error says which shape and names are needed."""

    class Mesh:
        mesh_dim_names, shape = ("a", "b"), (4, 1)

    exported = export(torch.nn.Linear(4, 4), torch.ones(2, 4))
    result = sdy.propagate(exported, {"data": 2, "model": 2})
    with pytest.raises(sdy.OptionError, match=r"mesh_dim_names=\('data', 'model'\)"):
        result.distribute(torch.nn.Linear(4, 4), Mesh())
