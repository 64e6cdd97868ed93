"""Nine kinds of models train on four processes with the losses of one; one of them by default."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.torch.trained_models import TRAINED_MODELS

pytestmark = pytest.mark.torch
ROOT = Path(__file__).resolve().parents[2]
SOME = ("grouped 2x2",)
EVERY = [f"{name} {mesh}{form}" for name in TRAINED_MODELS for mesh in ("4", "2x2") for form in ("", " compiled")]
CASES = EVERY if os.environ.get("SHARDY_ALL_PROGRAMS") else SOME


@pytest.fixture(scope="module")
def trained() -> dict[str, list[dict[str, Any]]]:
    """What each of four processes saw of each case."""
    command = [sys.executable, "-m", "tests.torch.training_processes", *CASES]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=3600, check=True)
    seen: dict[str, list[dict[str, Any]]] = json.loads(done.stdout.splitlines()[-1])
    return seen


@pytest.mark.parametrize("name", CASES)
def test_losses_are_those_of_one_process(name: str, trained: dict[str, list[dict[str, Any]]]) -> None:
    """Ten steps of AdamW, and what is evaluated then; another mesh reads the state from a checkpoint."""
    for seen in trained[name]:
        assert seen["loss"] <= 1e-5
        assert seen["evaluated"] <= 1e-5
        assert seen["reloaded"] == 0
