"""Tests that need PyTorch: without it they are left out, with a line that says so."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

_MISSING = find_spec("torch") is None
collect_ignore_glob = ["test_*.py"] if _MISSING else []


def pytest_report_header() -> str | None:
    """Say why the tests of this folder are left out."""
    return "tests/torch is left out: PyTorch is not installed" if _MISSING else None


@pytest.fixture(autouse=True)
def _seeded() -> None:
    import torch

    # Workers share the cores already; threads that wait for each other take longer than the work.
    torch.set_num_threads(1)
    torch.manual_seed(0)
