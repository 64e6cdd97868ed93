"""Stages for ``torch.distributed.pipelining``, in the schedules of this package."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

import shardy_py as sdy
from shardy_py.mpmd.schedules.schedule import PipelineSchedule
from shardy_py.mpmd.torch_pipelining import _schedule
from tests.torch.pipeline_processes import Gpt

pytestmark = pytest.mark.torch
ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_a_gpt_on_four_processes_loses_what_one_process_loses() -> None:
    """Losses of five steps are equal to 1e-5; PyTorch runs the list of each process."""
    command = [sys.executable, "-m", "tests.torch.pipeline_processes", "ZB-H1:4"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    losses = json.loads(done.stdout.splitlines()[-1])["ZB-H1:4"][-1]
    assert losses["stages"] == pytest.approx(losses["model"], rel=1e-5)
    assert losses["model"][-1] < losses["model"][0]


def test_an_exported_module_is_cut_at_the_paths_of_submodules() -> None:
    """Each layer runs on the mesh of its path, and what is around the layers where it is needed."""
    layers = [torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Tanh()) for _ in range(12)]
    model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Sequential(*layers), torch.nn.Linear(8, 4))
    exported = torch.export.export(model, (torch.zeros(4, 2, 4),))
    names = {f"1.{number}": f"m{number // 6}" for number in range(12)}
    topology = {"m0": {"x": 2}, "m1": {"x": 2}}
    program = sdy.mpmd.partition(exported, topology, names, in_shardings={"1.0.0.weight": ("x", None)})
    counts = {
        mesh: [op.name for op in program.fragments(mesh)[0].walk()].count("aten.linear.default") for mesh in topology
    }
    assert counts == {"m0": 6, "m1": 7}
    explanation = program.explain()
    (tail,) = [item for item in explanation.placements if item.op.location == "2" and "linear" in item.op.name]
    assert tail.reason == "a result of the program needs it on m1"
    assert [(item.source.mesh, item.target.mesh) for item in explanation.transfers] == [("m0", "m1")]


@pytest.mark.parametrize(
    ("cuts", "message"),
    [(["layers.2", "layers.9"], "no submodule 'layers.9'"), (["layers.2", "layers.2"], "begins one stage only")],
)
def test_cuts_are_checked(cuts: list[str], message: str) -> None:
    """Before any process waits for another one."""
    with pytest.raises(sdy.OptionError, match=message):
        sdy.mpmd.torch_stages(Gpt(), (), cuts, microbatches=8)


@pytest.mark.parametrize(
    ("schedule", "stages", "message"),
    [
        ("1F1B", 3, "3 stages do not divide among 2 processes"),
        ("DualPipe", 2, "runs a stage in two processes"),
        ("ZB-V", 4, "neighbouring stages in one process"),
        (PipelineSchedule.parse("0F0,0B0"), 2, "is for 1 processes, 1 stages and 1 microbatches, not for 2"),
        (PipelineSchedule.parse("0B0,0F0"), 2, "deadlock"),
    ],
)
def test_schedules_are_checked(schedule: Any, stages: int, message: str) -> None:
    """They have all stages, one list for each process, and can run."""
    with pytest.raises(sdy.ShardyError, match=message):
        _schedule(schedule, stages, 2, 4)
