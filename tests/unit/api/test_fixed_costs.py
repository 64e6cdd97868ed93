"""What a run prepares only once, whatever the size of its program."""

from __future__ import annotations

import sys

import pytest

import shardy_py as sdy
from shardy_py.plugins import manager

pytest.importorskip("jaxlib", reason="the programs are MLIR modules")

ONE_OP = """
sdy.mesh @mesh = <["a"=2]>
func.func @main(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>}) -> tensor<8xf32> {
  %0 = stablehlo.add %arg0, %arg0 : tensor<8xf32>
  return %0 : tensor<8xf32>
}
"""


def test_the_second_run_neither_looks_for_plugins_nor_imports(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first run finds the plugins and imports what it runs; the second one uses both as they are."""
    text = sdy.propagate(ONE_OP).text
    modules = _own_modules()

    def refuse(*args: object, **kwargs: object) -> None:
        raise AssertionError("the second run looks for plugins")

    monkeypatch.setattr(manager, "entry_points", refuse)
    assert sdy.propagate(ONE_OP).text == text
    assert _own_modules() == modules


def _own_modules() -> set[str]:
    """Return the names of the modules of the packages that are imported."""
    return {name for name in sys.modules if name.startswith("shardy_")}
