"""What the pipeline leaves is a program: XLA compiles it, and it computes the same."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("jax", reason="running the result needs the extra 'jax'")

EXAMPLE = Path(__file__).parents[2] / "examples" / "gpt_train.mlir"
SCRIPT = Path(__file__).with_name("execute_sharded.py")


@pytest.mark.slow
def test_a_training_step_gives_the_same_numbers_on_eight_devices() -> None:
    """A transformer's training step, propagated by us, compiled by XLA for eight devices, agrees with one device."""
    flags = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=8"
    environment = {**os.environ, "XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"}
    done = subprocess.run(
        [sys.executable, str(SCRIPT), str(EXAMPLE)], capture_output=True, text=True, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    answer = json.loads(done.stdout.splitlines()[-1])
    assert answer["devices"] == [8]
    assert answer["results"] > 50
    assert math.isfinite(answer["largest"])
    assert answer["largest"] < 1e-3
