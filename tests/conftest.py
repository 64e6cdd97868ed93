"""Settings of all tests: how long an example takes says nothing, machines are shared."""

from __future__ import annotations

import os
import sys

from hypothesis import HealthCheck, settings

settings.register_profile("shared-machines", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("shared-machines")

# Many tests start processes; without compiled files each would compile the whole package again.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
