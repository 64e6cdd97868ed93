"""Settings of all tests: how long an example takes says nothing, machines are shared."""

from __future__ import annotations

import os
import signal
import sys

from hypothesis import HealthCheck, settings

settings.register_profile("shared-machines", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("shared-machines")

# Many tests start processes; without compiled files each would compile the whole package again.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# A shell ignores interrupts in what it runs behind it, and so would each process of a test that is interrupted.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
