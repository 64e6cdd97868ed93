"""Running over several meshes on host devices: in a process of its own, since JAX counts its devices once."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("jax", reason="running programs needs jax")

from tests.xla_flags import QUICK_CODE


@pytest.mark.parametrize(
    ("name", "devices"),
    [
        pytest.param("on_four_devices.py", 4, marks=pytest.mark.slow),
        # It takes half a minute: eight microbatches of eight layers are traced and partitioned as one program.
        pytest.param("gpt_on_eight_devices.py", 8, marks=pytest.mark.conformance),
    ],
)
def test_on_host_devices(name: str, devices: int) -> None:
    """All tests in the file pass."""
    tests = Path(__file__).with_name(name)
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count={devices} {QUICK_CODE}"
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tests)],
        capture_output=True,
        text=True,
        env={**os.environ, "XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"},
        check=False,
        timeout=1200,
        cwd=tests.parents[3],
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
