"""Pictures of the documentation: taken from pages, so that they show what a page is now.

``SHARDY_UPDATE_SCREENSHOTS=1 python -m pytest -m browser tests/browser/test_screenshots.py`` takes them again.
"""

from __future__ import annotations

import os
import re
import runpy
from io import BytesIO
from pathlib import Path
from struct import unpack

import pytest

pytest.importorskip("jax", reason="the program is lowered from JAX")

from shardy_py.api.options import SessionArguments
from shardy_py.explain.explore.explore import ExploreOptions, explore
from shardy_py.explain.explore.variants import Variant

pytestmark = pytest.mark.browser

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs" / "how-to"
DOCUMENT = FOLDER / "explore.md"
MOST_BYTES = 150_000


@pytest.fixture(scope="module")
def text():
    """A training step of a GPT of six layers, with the names that JAX gives its ops."""
    lowered = runpy.run_path(str(ROOT / "examples" / "make_gpt_train.py"))["lower"](6)
    return lowered.as_text(debug_info=True).replace(f"{ROOT}{os.sep}", "")


@pytest.fixture(scope="module")
def page(text):
    """Its page on a machine, beside the same step with whole weights on each device."""
    replicated = Variant("data parallel", re.sub(r'\{"model"\}', "{}", text))
    options = ExploreOptions(title="gpt_train.mlir", machine="tpu-v5e-4x4", proposals=1, variants=[replicated])
    return explore(SessionArguments(text), options)


def _size(picture: bytes) -> tuple[int, int]:
    """Return the width and the height in the header of a PNG."""
    assert picture.startswith(b"\x89PNG\r\n")
    return unpack(">II", picture[16:24])


def _save(picture: bytes, file: Path) -> None:
    """Write a picture with few colours, as pages have, which makes a small file."""
    pillow = pytest.importorskip("PIL.Image", reason="pictures are made small with Pillow")
    image = pillow.open(BytesIO(picture)).convert("RGB")
    image.quantize(96, dither=pillow.Dither.NONE).save(file, optimize=True)


def _check(tab, name):
    """Take a picture; it has the size of the one in the documentation, which the page shows."""
    tab.wait_for_timeout(400)
    picture = tab.screenshot()
    file = FOLDER / name
    if os.environ.get("SHARDY_UPDATE_SCREENSHOTS"):
        _save(picture, file)
    assert _size(picture) == _size(file.read_bytes())
    assert file.stat().st_size < MOST_BYTES
    assert f"]({name})" in DOCUMENT.read_text(encoding="utf-8")


def _choose(tab, words):
    tab.get_by_role("searchbox").fill(words)
    tab.locator("shardy-tree .row").first.click()
    tab.get_by_role("searchbox").fill("")


def test_the_picture_of_a_page(open_page, page):
    """A page with a product chosen: its layer in the graph, its rule, its shards and where its axes come from."""
    tab = open_page(page, width=1440, height=900)
    _choose(tab, "layer_3/mlp/up")
    tab.locator("shardy-graph .node.chosen").first.wait_for()
    _check(tab, "explore-page.png")


def test_the_picture_of_two_plans(open_page, page):
    """Two plans side by side, with what differs, in dark mode."""
    tab = open_page(page, width=1440, height=900, dark=True)
    tab.get_by_role("button", name="Side by side").click()
    tab.locator("shardy-graph").nth(1).locator(".node.differs").first.wait_for()
    _check(tab, "explore-plans.png")


def test_the_picture_of_transfers(open_page, page):
    """Transfers by layer, and a part of the time with the names of its pieces, in a window of 900 pixels."""
    tab = open_page(page, width=900, height=900)
    tab.get_by_label("by", exact=True).select_option("transfers")
    for _ in range(4):
        tab.get_by_role("button", name="Zoom in: time").click()
    _check(tab, "explore-900.png")


def test_the_picture_on_a_phone(open_page, page):
    """The same page in a window of 400 pixels: panels below each other."""
    _check(open_page(page, width=400, height=800), "explore-400.png")
