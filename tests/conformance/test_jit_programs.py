"""Programs of JAX propagate as `jax.jit` propagates them: every op, every result, every collective."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("jax", reason="the programs are compiled by jax")

SCRIPT = Path(__file__).with_name("run_jit_programs.py")


def run(*names: str) -> dict[str, str]:
    """Return what differs in some programs, or in all; "" where nothing does."""
    flags = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=8"
    done = subprocess.run(
        [sys.executable, str(SCRIPT), *names],
        capture_output=True,
        text=True,
        env={**os.environ, "XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"},
        check=False,
        timeout=1800,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return {line["program"]: line["difference"] for line in map(json.loads, done.stdout.splitlines())}


@pytest.mark.slow
def test_all_programs_propagate_like_jit() -> None:
    """Models, optimizers, solvers and samplers have XLA's shardings on all ops, and its collectives."""
    found = run()
    assert len(found) >= 60
    assert {name: difference for name, difference in found.items() if difference} == {}


def test_some_programs_propagate_like_jit() -> None:
    """A few of them: captured values of a loop, a top-k, expanded functions, calls, shards in a loop."""
    names = ("haiku_embedding_rnn", "sampler_beam_step", "special_functions", "calls_with_different_shardings")
    assert run(*names, "shards_in_a_loop") == dict.fromkeys((*names, "shards_in_a_loop"), "")
