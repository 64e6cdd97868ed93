"""Importing jaxlib's bindings without numpy, which is half of what they cost.

They need it for the builders of four kinds of attributes, of which no program here makes any, and import it as they
are imported themselves. Whoever calls one of these builders gets numpy then.
"""

from __future__ import annotations

import sys
from importlib import import_module
from threading import Lock
from types import ModuleType
from typing import Any

_TAKING = Lock()


class _NumpyOnDemand(ModuleType):
    """Stand-in for numpy in the bindings: it imports numpy as soon as an attribute is asked for."""

    def __getattr__(self, name: str) -> Any:
        _take_away(self)
        return getattr(import_module("numpy"), name)


def import_bindings() -> None:
    """Import ``jaxlib.mlir.ir``; numpy waits, unless it is there already.

    Raises:
        ImportError: jaxlib is missing, or cannot be imported.
    """
    if "jaxlib.mlir.ir" in sys.modules:
        return
    numpy = _NumpyOnDemand("numpy")
    sys.modules.setdefault("numpy", numpy)
    try:
        import_module("jaxlib.mlir.ir")
    finally:
        _take_away(numpy)


def _take_away(numpy: ModuleType) -> None:
    """Let imports find the real numpy from now on."""
    # Between the look and the removal another thread may do the same and import the real one.
    with _TAKING:
        if sys.modules.get("numpy") is numpy:
            del sys.modules["numpy"]
