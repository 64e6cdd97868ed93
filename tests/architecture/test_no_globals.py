"""State lives in values that are passed along, not in modules."""

from __future__ import annotations

import importlib
import pkgutil

import pluggy

import shardy_py
from shardy_py.ir.graph.program import Program
from shardy_py.plugins import Dialect, Registry


def test_no_module_holds_a_registry() -> None:
    """No module of the core keeps a registry, a plugin manager, a dialect or a program."""
    actual, seen = [], 0
    for info in pkgutil.walk_packages(shardy_py.__path__, "shardy_py."):
        try:
            module = importlib.import_module(info.name)
        except ImportError:
            continue
        seen += 1
        state = (Registry, pluggy.PluginManager, Dialect, Program)
        actual += [f"{info.name}.{name}" for name, value in vars(module).items() if isinstance(value, state)]
    assert seen > 20
    assert actual == []
