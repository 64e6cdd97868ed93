"""Models of Hugging Face on shards: on four processes, and simulated in one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch

from shardy_py.targets.torch import make_local_torch_program

pytest.importorskip("transformers", reason="the models are those of Hugging Face")
from tests.torch.hugging_face import MESHES, MODELS, distance, exported, propagated

pytestmark = pytest.mark.torch
ROOT = Path(__file__).resolve().parents[2]
COLLECTIVES = {f"spmd.{kind}" for kind in ("all_gather", "all_reduce", "all_to_all", "reduce_scatter")}
ALL = bool(os.environ.get("SHARDY_ALL_PROGRAMS"))
CASES = [
    f"{name}:{mesh}:{batch}"
    for name, mesh, batch in (
        [(name, mesh, batch) for name in MODELS for mesh in MESHES for batch in (4, 5, 7)]
        if ALL
        else [("llama", "4", 4), ("llama", "2x2", 5), ("mixtral", "2x2", 4), ("mixtral", "2x2", 7)]
    )
]


@pytest.fixture(scope="module")
def seen() -> dict[str, list[dict[str, Any]]]:
    """What the four processes of each case saw."""
    command = [sys.executable, "-m", "tests.torch.model_processes", *CASES]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=1200, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return dict(json.loads(line) for line in done.stdout.splitlines() if line.startswith('["'))


@pytest.mark.parametrize("case", CASES)
def test_four_processes_compute_what_one_does(case: str, seen: dict[str, list[dict[str, Any]]]) -> None:
    """With as many collectives as were predicted; what does not divide is gathered where a reshape needs it."""
    model = MODELS[case.split(":")[0]]
    for process in seen[case]:
        assert process["distance"] <= model.tolerance
        if process["gathered"] == 0:
            assert process["ran"] == process["predicted"]
        else:
            assert case.split(":")[2] != "4"


@pytest.mark.parametrize("name", MODELS)
def test_simulated_devices_compute_what_one_does(name: str) -> None:
    """Seven of seven models, with a batch that divides; each op has a local form."""
    program, given = exported(name, 4)
    result = propagated(name, program, MESHES["2x2"])
    local = make_local_torch_program(result._explicit, result.registry, strict=True)
    state = {**program.state_dict, **program.constants}
    arguments = [given if item.kind == "input" else state[item.name] for item in local.origin.arguments]
    with torch.no_grad():
        assert distance(local.simulate(*arguments), program.module()(given)) <= MODELS[name].tolerance
    ran = Counter(op.name.removeprefix("spmd.") for op in local.program.walk() if op.name in COLLECTIVES)
    assert ran == Counter(item.kind for item in result.redistributions)
    assert sum(ran.values()) > 0
