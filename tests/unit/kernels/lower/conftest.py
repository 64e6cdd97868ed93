"""Kernels of these tests are compiled by all passes of LLVM, as those of large arrays are."""

from __future__ import annotations

import pytest

from shardy_py.kernels.lower import host


@pytest.fixture(autouse=True)
def all_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compile no kernel quickly, however small it is."""
    monkeypatch.setattr(host, "SMALL_BYTES", 0)
