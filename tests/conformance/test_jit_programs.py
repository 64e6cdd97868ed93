"""Programs of JAX propagate as `jax.jit` propagates them: every op, every result, every collective."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("jax", reason="the programs are compiled by jax")

from tests.xla_flags import QUICK_CODE

HERE = Path(__file__).parent


def run_script(script: str, *names: str) -> list[dict[str, Any]]:
    """Return the lines of a script about some programs, or about all."""
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=8 {QUICK_CODE}"
    done = subprocess.run(
        [sys.executable, str(HERE / script), *names],
        capture_output=True,
        text=True,
        env={**os.environ, "XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"},
        check=False,
        timeout=1800,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return [json.loads(line) for line in done.stdout.splitlines()]


def run(*names: str) -> dict[str, str]:
    """Return what differs in some programs, or in all; "" where nothing does."""
    return {line["program"]: line["difference"] for line in run_script("run_jit_programs.py", *names)}


@pytest.mark.slow
def test_all_programs_propagate_like_jit() -> None:
    """Models, optimizers, solvers and samplers have XLA's shardings on all ops, and its collectives."""
    actual = run()
    assert len(actual) >= 60
    assert {name: difference for name, difference in actual.items() if difference} == {}


SOME = (
    "haiku_embedding_rnn",
    "sampler_beam_step",
    "special_functions",
    "calls_with_different_shardings",
    "joined_rows",
    "shards_in_a_loop",
)


def test_some_programs_propagate_like_jit() -> None:
    """A few of them: captured values of a loop, a top-k, expanded functions, calls, moved rows, shards in a loop."""
    assert run(*SOME) == dict.fromkeys(SOME, "")


@pytest.mark.slow
def test_all_programs_run_with_the_collectives_of_jit() -> None:
    """`sdy.jit` in the default order sends what `jax.jit` sends: each kind and size as often, in loops too."""
    actual = run_script("run_jit_collectives.py")
    assert {line["program"]: line["difference"] for line in actual if line["difference"]} == {}
    assert sum(line["runs"] > 0 for line in actual) >= 40


def test_some_programs_run_with_the_collectives_of_jit() -> None:
    """A few of them: a recurrence, a scan over layers and its gradient, experts, a solver."""
    names = ("haiku_lstm", "maxtext_scanned_layers", "moe_gradient", "solver_conjugate_gradient")
    actual = run_script("run_jit_collectives.py", *names)
    assert {line["program"]: line["difference"] for line in actual} == dict.fromkeys(names, "")
    assert all(line["runs"] for line in actual)
