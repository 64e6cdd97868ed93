"""The bytes of arguments and results are those that XLA's own analysis of the compiled program gives."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("jax", reason="compiling needs the extra 'jax'")

SCRIPT = Path(__file__).with_name("memory_analysis.py")
_POINTER = 8


@pytest.mark.slow
def test_arguments_and_results_are_exactly_those_of_xla() -> None:
    """Eleven programs, jitted for eight host devices: products, attention, training steps, a loop, small types."""
    flags = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=8"
    environment = {**os.environ, "XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"}
    done = subprocess.run([sys.executable, str(SCRIPT)], capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(lines) == 11
    for line in lines:
        # XLA counts the table that points to the results, too, where there are several.
        table = _POINTER * line["num_results"] if line["num_results"] > 1 else 0
        assert line["arguments"][0] == line["arguments"][1], line
        assert line["results"][0] + table == line["results"][1], line
