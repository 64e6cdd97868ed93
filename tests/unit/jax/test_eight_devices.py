"""Running on eight host devices: in a process of its own, since JAX counts its devices once."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("jax", reason="running programs needs jax")

from tests.xla_flags import QUICK_CODE

pytestmark = pytest.mark.slow

FILES = (
    "eight_devices.py",
    "callables_on_eight_devices.py",
    "costs_on_eight_devices.py",
    "derivatives_on_eight_devices.py",
    "functions_on_eight_devices.py",
    "jit_stages_on_eight_devices.py",
)


@pytest.mark.parametrize("file", FILES)
def test_on_eight_devices(file: str) -> None:
    """All tests in a file pass."""
    tests = Path(__file__).with_name(file)
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=8 {QUICK_CODE}"
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tests)],
        capture_output=True,
        text=True,
        env={**os.environ, "XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"},
        check=False,
        timeout=1200,
        cwd=tests.parents[4],
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
