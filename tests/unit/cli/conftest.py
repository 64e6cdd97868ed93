"""A command line in the same process, and small modules."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("jaxlib", reason="the commands read MLIR modules")
testing = pytest.importorskip("click.testing")

MODULE = """\
sdy.mesh @mesh = <["a"=2, "b"=2]>
func.func @main(%arg0: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}, %arg1: tensor<16x4xf32>)
    -> tensor<8x4xf32> {
  %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0]
      : (tensor<8x16xf32>, tensor<16x4xf32>) -> tensor<8x4xf32>
  %1 = "toy.window"(%0) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  return %1 : tensor<8x4xf32>
}
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A file with a module, in the current directory; its op ``toy.window`` has no rule."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in.mlir").write_text(MODULE)
    return "in.mlir"


@pytest.fixture
def shardy() -> Callable[..., testing.Result]:
    """Runs ``shardy`` with arguments."""
    from shardy_py.cli.app import shardy as command

    def run(*arguments: str, stdin: str | None = None) -> testing.Result:
        return testing.CliRunner().invoke(command, list(arguments), input=stdin, prog_name="shardy")

    return run
