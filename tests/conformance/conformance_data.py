"""The conformance data beside the project, where it is present."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

DATA = Path(__file__).resolve().parents[2].parent / "shared" / "conformance"


def need(*paths: str) -> None:
    """Skip the test that calls this where a part of the data is missing."""
    for path in paths:
        if not (DATA / path).exists():
            pytest.skip(f"no conformance data: ../shared/conformance/{path} is missing", allow_module_level=True)


def script(name: str) -> ModuleType:
    """Return one of the scripts of the data as a module."""
    need(f"{name}.py")
    if str(DATA) not in sys.path:
        sys.path.append(str(DATA))
    spec = importlib.util.spec_from_file_location(f"conformance_{name}", DATA / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
