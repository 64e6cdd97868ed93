"""The text of a program with more shardings."""

from __future__ import annotations

import pytest

pytest.importorskip("jaxlib", reason="the module is jaxlib's")

from shardy_py.api.annotated_text import annotated_text
from shardy_py.api.options import ProgramInput
from shardy_py.frontends.mlir import MLIR
from shardy_py.plugins.installed import installed_registry

TANH = """\
sdy.mesh @mesh = <["a"=2]>
func.func @main(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %0 = stablehlo.tanh %x : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}
"""


def test_a_module_that_is_given_stays_as_it_is() -> None:
    """Shardings are written into a copy, for plans as for advice."""
    module = MLIR.parse_text(TANH)
    before = str(module)
    program = ProgramInput(module, in_shardings={0: ("a", None)})
    text = annotated_text(program, installed_registry(), lambda read: None)
    assert '%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}' in text
    assert str(module) == before
