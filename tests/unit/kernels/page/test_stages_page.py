"""The page of stages as a file."""

from __future__ import annotations

import json
import re

import pytest

pytest.importorskip("jaxlib", reason="fusions are read through the extra 'stablehlo'")
pytest.importorskip("xdsl", reason="kernels need the extra 'codegen'")

from shardy_py.kernels import emit
from shardy_py.kernels.page.stages_page import page_data, stages_page
from tests.unit.kernels.fusions import SUM, fusion_of


def test_the_page_holds_all_texts_and_pictures() -> None:
    """The data of the page are read back from it, whatever signs the texts have; maps and accesses are drawn."""
    kernel = emit(fusion_of(SUM.format(shape="8x4096", result="8", dim=1)))
    html = stages_page(kernel).html
    match = re.search(r'<script type="application/json" id="data">(.*?)</script>', html, re.DOTALL)
    assert match is not None
    data = json.loads(match[1])
    assert data == page_data(kernel)
    assert [op.split(" : ")[0] for op in data["ops"]] == ["stablehlo.constant", "stablehlo.reduce"]
    assert data["stages"][0]["title"] == "initial"
    assert [text["title"] for text in data["machines"]] == ["PTX", "SASS"]
    assert html.count("<svg") == len(kernel.maps) + 1
    assert "http://" not in html.replace("http://www.w3.org/2000/svg", "")
    assert "{{" not in html.split("<main")[0]
