"""Fifteen kinds of models train on four processes with the losses of one; a few of them by default."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.torch.trained_models import TRAINED_MODELS
from tests.torch.user_models import USER_MODELS

pytestmark = pytest.mark.torch
ROOT = Path(__file__).resolve().parents[2]
SOME = ("grouped 2x2", "image_transformer 4")
EVERY = [
    *(f"{name} {mesh}{form}" for name in TRAINED_MODELS for mesh in ("4", "2x2") for form in ("", " compiled")),
    *(f"{name} {mesh} inductor" for name in TRAINED_MODELS for mesh in ("4", "2x2")),
    *(f"{name} {mesh}" for name in USER_MODELS for mesh in ("4", "2x2")),
]
CASES = EVERY if os.environ.get("SHARDY_ALL_PROGRAMS") else SOME


@pytest.mark.parametrize("name", CASES)
def test_losses_are_those_of_one_process(name: str) -> None:
    """Ten steps of AdamW, and what is evaluated then; another mesh reads the state from a checkpoint."""
    command = [sys.executable, "-m", "tests.torch.training_processes", name]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=1800, check=True)
    for seen in json.loads(done.stdout.splitlines()[-1])[name]:
        assert seen["loss"] <= 1e-5
        assert seen["evaluated"] <= 1e-5
        assert seen["reloaded"] == 0
