"""Libraries that kernels need."""

from __future__ import annotations

import importlib.metadata

import pytest

pytest.importorskip("xdsl", reason="kernels are written in dialects of xDSL")

from shardy_py.errors import OptionError
from shardy_py.kernels.requirements import require_xdsl


@pytest.mark.parametrize("version", ["0.62.0", "0.73.9.dev0+g1"])
def test_older_versions_are_refused(monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    """Other parts of the package do with an xDSL that lacks types of kernels."""
    monkeypatch.setattr(importlib.metadata, "version", lambda name: version)
    with pytest.raises(OptionError) as caught:
        require_xdsl()
    (problem,) = caught.value.diagnostics
    assert problem.code == "old-xdsl"
    assert problem.message == f"kernels need xdsl 0.74 or later, and {version} is installed"
    assert problem.hint == "pip install 'shardy_py[codegen]'"


@pytest.mark.parametrize("version", ["0.74.0", "0.74.0rc1", "0.100", "1"])
def test_others_will_do(monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    """Versions are compared as numbers."""
    monkeypatch.setattr(importlib.metadata, "version", lambda name: version)
    require_xdsl()
