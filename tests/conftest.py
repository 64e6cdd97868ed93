"""Settings of all tests: how long an example takes says nothing, machines are shared."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "shared-machines", max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("thorough", settings.get_profile("shared-machines"), max_examples=400)
settings.load_profile("shared-machines")

# Many tests start processes; without compiled files each would compile the whole package again.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# A shell ignores interrupts in what it runs behind it, and so would each process of a test that is interrupted.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def device_process() -> Iterator[Any]:
    """The process that runs the local programs of all tests with `one_process`."""
    from tests.device_process import DeviceProcess

    process = DeviceProcess()
    yield process
    process.close()


@pytest.fixture
def one_process(device_process: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Local programs run in one process for all tests: that each has its own is tested where it is told."""
    monkeypatch.setattr("shardy_py.jax.local.child.ask_once", device_process.ask)
