"""Programs lowered by JAX, sharded by us and compiled by XLA for eight host devices, compute what JAX computes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("jax", reason="running programs needs jax")

from tests.xla_flags import QUICK_CODE

SCRIPT = Path(__file__).with_name("run_jax_programs.py")
TOLERANCE = 2e-3


def run(*names: str) -> dict[str, float]:
    """Return the differences of some programs, or of all."""
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=8 {QUICK_CODE}"
    done = subprocess.run(
        [sys.executable, str(SCRIPT), *names],
        capture_output=True,
        text=True,
        env={**os.environ, "XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"},
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    lines = map(json.loads, done.stdout.splitlines())
    return {line["program"]: line["difference"] for line in lines}


@pytest.mark.slow
def test_programs_of_jax_compute_the_same() -> None:
    """Scans, loops, branches, constraints, manual computations and the rest agree with plain JAX on one device."""
    actual = run()
    assert len(actual) > 25
    assert {name: difference for name, difference in actual.items() if difference > TOLERANCE} == {}


def test_a_scan_over_sharded_weights_runs() -> None:
    """The smallest of them that once ended the process, by itself."""
    (difference,) = run("scan_over_sharded_weights").values()
    assert difference <= TOLERANCE
