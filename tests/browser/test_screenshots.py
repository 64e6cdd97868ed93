"""Pictures of the documentation: taken from pages, so that they show what a page is now.

``SHARDY_UPDATE_SCREENSHOTS=1 python -m pytest -m browser tests/browser/test_screenshots.py`` takes them again.
"""

from __future__ import annotations

import os
from pathlib import Path
from struct import unpack

import pytest

pytest.importorskip("jaxlib", reason="the frontend is jaxlib's")

from shardy_py.api.options import SessionArguments
from shardy_py.explain.explore.explore import ExploreOptions, explore
from tests.unit.explain.explore.programs import RIVALS, TWO_LAYERS

pytestmark = pytest.mark.browser

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "how-to"
PAGE = FOLDER / "explore.md"


def _size(picture: bytes) -> tuple[int, int]:
    """Return the width and the height in the header of a PNG."""
    assert picture.startswith(b"\x89PNG\r\n")
    return unpack(">II", picture[16:24])


def _check(tab, name):
    """Take a picture; it has the size of the one in the documentation, which the page shows."""
    tab.wait_for_timeout(300)
    picture = tab.screenshot()
    file = FOLDER / name
    if os.environ.get("SHARDY_UPDATE_SCREENSHOTS"):
        file.write_bytes(picture)
    assert _size(picture) == _size(file.read_bytes())
    assert f"]({name})" in PAGE.read_text(encoding="utf-8")


def test_the_picture_of_a_page(open_page):
    """A page with an op chosen and its chain highlighted."""
    page = explore(SessionArguments(TWO_LAYERS), ExploreOptions(title="two_layers.mlir", machine="cpu-8"))
    tab = open_page(page, width=1200, height=760)
    tab.get_by_role("searchbox").fill("tanh")
    tab.locator("shardy-tree .row").first.click()
    tab.get_by_role("searchbox").fill("")
    chain = tab.locator('details.chain[data-axis="model"]')
    chain.locator("summary").click()
    chain.get_by_role("button", name="Highlight in the graph").click()
    tab.locator("shardy-graph .node.lit").first.wait_for()
    _check(tab, "explore-page.png")


def test_the_picture_of_two_orders(open_page):
    """Two orders side by side, with what differs, in dark mode."""
    options = ExploreOptions(title="rivals.mlir", schedule="contractions-first", against="elementwise-first")
    tab = open_page(explore(SessionArguments(RIVALS), options), width=1200, height=760, dark=True)
    tab.get_by_role("button", name="Side by side").click()
    tab.locator("shardy-graph").nth(1).locator(".node.differs").first.wait_for()
    _check(tab, "explore-orders.png")
