"""Devices of the host: as many as one likes, as long as JAX has not started."""

from __future__ import annotations

import os

from shardy_py.errors import Diagnostic, OptionError

_COUNT = "--xla_force_host_platform_device_count"


def use_devices(count: int, platform: str = "cpu") -> None:
    """Start JAX with a number of host devices; it counts them once, when it looks for devices first.

    Args:
        count: The number of devices of the host.
        platform: What JAX calls the devices to use: ``cpu`` for the host's; another one has the devices it has.

    Raises:
        OptionError: JAX has no devices of this platform.
    """
    flags = [flag for flag in os.environ.get("XLA_FLAGS", "").split() if not flag.startswith(_COUNT)]
    os.environ["XLA_FLAGS"] = " ".join([*flags, f"{_COUNT}={count}"])
    os.environ["JAX_PLATFORMS"] = platform
    # XLA's log messages about its devices are hidden.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    if platform != "cpu":
        _refuse_missing_platform(platform)


def _refuse_missing_platform(platform: str) -> None:
    """Check that JAX has devices of a platform; this starts it.

    Raises:
        OptionError: it has none.
    """
    import jax

    try:
        jax.devices()
    except RuntimeError as error:
        message = f"JAX has no devices of the platform {platform!r}: {str(error).splitlines()[0]}"
        hint = "give --platform cpu, or install JAX with the plugin for these devices"
        raise OptionError(Diagnostic("unknown-platform", message, hint=hint)) from None
