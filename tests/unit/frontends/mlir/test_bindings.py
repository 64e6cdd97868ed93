"""The bindings are imported without numpy, which comes as soon as a builder of theirs needs it."""

from __future__ import annotations

import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType, SimpleNamespace

import pytest

from shardy_py.frontends.mlir import bindings

pytest.importorskip("jaxlib")

BUILD = """
from jaxlib.mlir import ir
with ir.Context() as context:
    built = [ir.AttrBuilder.get(f"{kind}ElementsAttr")([1, 2], context) for kind in ("F64", "I32", "I64", "Index")]
assert [str(item.type) for item in built] == ["tensor<2xf64>", "tensor<2xi32>", "tensor<2xi64>", "tensor<2xindex>"]
assert str(built[2]) == "dense<[1, 2]> : tensor<2xi64>"
"""


def _run(script: str) -> None:
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_numpy_waits_until_a_builder_needs_it() -> None:
    """Parsing a program imports no numpy; builders of the bindings give what they always give."""
    _run(
        "import sys\n"
        "from shardy_py.frontends.mlir import parse_module\n"
        "parse_module('module {}')\n"
        "assert 'jaxlib.mlir.ir' in sys.modules\n"
        "assert 'numpy' not in sys.modules\n"
        f"{BUILD}"
        "import numpy\n"
        "assert numpy.__spec__.name == 'numpy'\n"
        "assert numpy.arange(3).sum() == 3\n"
    )


@pytest.mark.parametrize("first", ["import numpy", "from jaxlib.mlir import ir"])
def test_numpy_that_is_there_stays(first: str) -> None:
    """Where numpy or the bindings have been imported before, nothing changes."""
    _run(
        f"{first}\n"
        "import sys\n"
        "before = sys.modules['numpy']\n"
        "from shardy_py.frontends.mlir import parse_module\n"
        "parse_module('module {}')\n"
        "assert sys.modules['numpy'] is before\n"
        f"{BUILD}"
    )


def test_whoever_imports_numpy_meanwhile_gets_what_it_has() -> None:
    """A module that imports numpy, its names or its submodules while the bindings are imported finds all of them."""
    _run(
        "import sys\n"
        "from shardy_py.frontends.mlir.bindings import _NumpyOnDemand\n"
        "sys.modules['numpy'] = _NumpyOnDemand('numpy')\n"
        "import numpy as early\n"
        "from numpy import ndarray\n"
        "import numpy.linalg\n"
        "assert isinstance(early.zeros(2), ndarray)\n"
        "assert early.linalg is sys.modules['numpy.linalg']\n"
        "assert sys.modules['numpy'] is not early\n"
    )


def test_threads_take_the_stand_in_away_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where two threads find it, one of them takes it away; the real numpy would be the next that is found there."""

    class SlowModules(dict[str, ModuleType]):
        def get(self, *args):
            actual = super().get(*args)
            time.sleep(0.05)
            return actual

    modules = SlowModules(numpy=ModuleType("numpy"))
    monkeypatch.setattr(bindings, "sys", SimpleNamespace(modules=modules))
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(bindings._take_away, [modules["numpy"]] * 4))
    assert "numpy" not in modules
