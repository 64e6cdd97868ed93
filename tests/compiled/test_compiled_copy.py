"""In a compiled copy of the checkout the compiled modules are those that run."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from compiled.modules import MODULES

ROOT = Path(__file__).resolve().parents[2]
IS_COMPILED = any((ROOT / "shardy_py" / "ir" / "graph").glob("program.*.so"))


@pytest.mark.parametrize("path", MODULES)
def test_a_listed_module(path: str) -> None:
    """Each listed module has a source, and in a compiled copy it is the extension module that is imported."""
    assert (ROOT / path).is_file()
    if IS_COMPILED:
        module = importlib.import_module(path.removesuffix(".py").replace("/", "."))
        assert Path(str(module.__file__)).suffix != ".py"


def test_the_list_is_sorted() -> None:
    """The list has every module once, in order."""
    assert list(MODULES) == sorted(set(MODULES))
