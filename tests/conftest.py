"""Settings of all tests: how long an example takes says nothing, machines are shared."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

settings.register_profile("shared-machines", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("shared-machines")
