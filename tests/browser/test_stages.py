"""The page of stages in a browser: lines that belong to one op are lit together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("jaxlib", reason="fusions are read through the extra 'stablehlo'")
pytest.importorskip("xdsl", reason="kernels need the extra 'codegen'")

from shardy_py.kernels import emit
from shardy_py.kernels.page.stages_page import stages_page
from tests.unit.kernels.fusions import fusion_of

pytestmark = pytest.mark.browser
TANH = """
func.func @main(%x: tensor<4096xf32>) -> tensor<4096xf32> {
  %0 = stablehlo.tanh %x : tensor<4096xf32>
  %1 = stablehlo.multiply %0, %x : tensor<4096xf32>
  return %1 : tensor<4096xf32>
}"""


def test_an_op_is_lit_in_all_columns(open_page: Callable[..., Any], expect: Callable[..., Any]) -> None:
    """A click on an op keeps its lines lit, in another stage too; a second click lets them go."""
    tab = open_page(stages_page(emit(fusion_of(TANH))))
    tab.locator(".column.ops [data-op='0']").click()
    expect(tab.locator(".column.PTX .lit", has_text="fma.rn.f32").first).to_be_visible()
    assert tab.locator(".column.PTX .lit", has_text="st.global").count() == 0
    tab.locator("select").select_option(label="initial")
    expect(tab.locator(".column.stage .lit", has_text="math.tanh")).to_have_count(1)
    tab.locator(".column.ops [data-op='0']").click()
    tab.mouse.move(2, 2)
    expect(tab.locator(".lit", has_text="math.tanh")).to_have_count(0)
