"""What the tests of plugin files share."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def _loaded_plugins_go(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Forget the modules and the paths of the plugins that a test loads."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None) or ""
        if hasattr(module, "__shardy_name__") or file.startswith(str(tmp_path)):
            del sys.modules[name]
