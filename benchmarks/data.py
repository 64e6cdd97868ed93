"""Everything measured as data for JSON."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from attrs import asdict

from benchmarks.measure import Measurement, Settings, Skipped
from benchmarks.targets import Measured, targets

PACKAGES = ("shardy_py", "jaxlib", "jax", "networkx", "attrs")


def report(
    items: Sequence[Measurement | Skipped],
    measured: Measured,
    *,
    settings: Settings,
    date: str,
) -> dict[str, Any]:
    """Return a report that says by itself how it came about; times in seconds, memory in bytes.

    Args:
        items: The programs, those that were left out included.
        measured: What targets are about.
        settings: The settings of the measurement.
        date: When, as the caller says it.
    """
    return {
        "date": date,
        "machine": _machine(),
        "versions": {"python": platform.python_version()} | {name: version(name) for name in PACKAGES},
        "settings": asdict(settings),
        "programs": [_program(item) for item in items if isinstance(item, Measurement)],
        "left_out": [asdict(item) for item in items if isinstance(item, Skipped)],
        "starts": measured.starts and asdict(measured.starts),
        "fixed_costs": measured.fixed and asdict(measured.fixed),
        "sweep": measured.sweep and asdict(measured.sweep),
        "large": measured.large and asdict(measured.large),
        "targets": [asdict(target) | {"verdict": target.verdict} for target in targets(measured)],
    }


def _program(item: Measurement) -> dict[str, Any]:
    derived = {
        "equal": item.equal,
        "our_seconds": item.our_seconds,
        "reference_seconds": item.reference_seconds,
        "ratio": item.ratio,
        "cpu_ratio": item.cpu_ratio,
        "our_unverified_seconds": item.our_unverified_seconds,
        "unverified_seconds": item.unverified_seconds,
        "unverified_ratio": item.unverified_ratio,
        "repeated_ratio": item.repeated_ratio,
        "first_ratio": item.first_ratio,
        "is_file": item.is_file,
        "stages": item.stages,
        "passes": item.passes,
        "again_share": item.again_share,
    }
    return {"name": item.name, "ops": item.ops, **derived, "runs": asdict(item)}


def _machine() -> dict[str, Any]:
    return {
        "system": platform.platform(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "load": os.getloadavg(),
    }


def _processor() -> str:
    file = Path("/proc/cpuinfo")
    lines = file.read_text().splitlines() if file.exists() else []
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())
