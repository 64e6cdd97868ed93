"""Models of Hugging Face and training steps on four processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("transformers", reason="the models are those of Hugging Face")
from tests.torch.hugging_face import MESHES, MODELS

pytestmark = pytest.mark.torch
ROOT = Path(__file__).resolve().parents[2]
EVEN = [f"{name}:{list(MESHES)[number % 2]}:4" for number, name in enumerate(MODELS)]
UNEVEN = [f"{name}:2x2:{5 if number % 2 else 7}" for number, name in enumerate(MODELS)]
STEPS = ["train_llama:2x2:4", "train_llama:2x2:5"]
ALL = [
    f"{name}:{mesh}:{batch}"
    for name in (*MODELS, "train_llama", "train_decoder")
    for mesh in MESHES
    for batch in (4, 5, 7)
]
CASES = ALL if os.environ.get("SHARDY_ALL_PROGRAMS") else [*EVEN, *UNEVEN, *STEPS]


def test_four_processes_compute_what_one_does() -> None:
    """Outputs, or loss and new state, are equal; each op has a local form; as many collectives run as predicted.

    On two axes the eager model with the parallel plan computes them, too. The processes start once
    for all cases, so that these are one test: two workers would prepare them twice.
    """
    command = [sys.executable, "-m", "tests.torch.model_processes", *CASES]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=1800, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    seen: dict[str, list[dict[str, Any]]] = json.loads(done.stdout.splitlines()[-1])
    assert list(seen) == CASES
    for case, processes in seen.items():
        name = case.split(":")[0]
        tolerance = MODELS[name].tolerance if name in MODELS else 1e-5
        assert len(processes) == 4, case
        for process in processes:
            assert process["distance"] <= tolerance, case
            assert process.get("planned", 0.0) <= tolerance, case
            assert process["ran"] == process["predicted"], case
            assert sum(process["ran"].values()) > 0, case
