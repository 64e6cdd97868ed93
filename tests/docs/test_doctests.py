"""The examples in docstrings are true."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest

from tests.docs.pages import ROOT


def _modules_with_examples(folder: Path) -> list[str]:
    """Return the names of the modules in a folder whose source has a prompt; the others are not even imported."""
    paths = [path for path in sorted(folder.rglob("*.py")) if ">>> " in path.read_text(encoding="utf-8")]
    names = [".".join(path.relative_to(folder.parent).with_suffix("").parts) for path in paths]
    return [name.removesuffix(".__init__") for name in names]


@pytest.mark.parametrize(
    "name", [*_modules_with_examples(ROOT / "shardy_py"), *_modules_with_examples(ROOT / "dialects/shardy_dialects")]
)
def test_docstring_examples(name: str) -> None:
    """A module has examples, and each gives what it says."""
    try:
        module = importlib.import_module(name)
    except ImportError as error:
        pytest.skip(f"needs an extra: {error}")
    results = doctest.testmod(module)
    assert results.failed == 0
    assert results.attempted
