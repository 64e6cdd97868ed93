"""The examples in docstrings are true."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
from types import ModuleType

import pytest

import shardy_dialects
import shardy_py


def _names(package: ModuleType) -> list[str]:
    return [module.name for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")]


@pytest.mark.parametrize("name", sorted(_names(shardy_py) + _names(shardy_dialects)))
def test_docstring_examples(name: str) -> None:
    """Each docstring example gives what it says."""
    try:
        module = importlib.import_module(name)
    except ImportError as error:
        pytest.skip(f"needs an extra: {error}")
    assert doctest.testmod(module).failed == 0
