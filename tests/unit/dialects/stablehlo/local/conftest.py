"""Local programs run in one process."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _one_process(one_process: None) -> None:
    """Start JAX once for all tests of the folder."""
