"""The site has every page, builds without a warning and loads nothing from elsewhere."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from html.parser import HTMLParser
from typing import Any

import pytest

from tests.docs.pages import ROOT

DOCS = ROOT / "docs"
PAGES = {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")}
_MODULE = re.compile(r"^::: (\S+)$", re.MULTILINE)


def _leaves(nav: Any) -> list[str]:
    """Return the pages of a navigation in order."""
    if isinstance(nav, str):
        return [nav]
    return [page for item in (nav.values() if isinstance(nav, dict) else nav) for page in _leaves(item)]


def test_the_navigation_has_every_page_once() -> None:
    """The navigation names each page of the documentation, and no other, once."""
    yaml = pytest.importorskip("yaml")
    nav = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))["nav"]
    assert sorted(_leaves(nav)) == sorted(PAGES)


@pytest.mark.parametrize("page", sorted(page for page in PAGES if _MODULE.search((DOCS / page).read_text("utf-8"))))
def test_modules_of_the_reference_exist(page: str) -> None:
    """Each module whose docstrings a page shows can be found."""
    names = _MODULE.findall((DOCS / page).read_text(encoding="utf-8"))
    assert [name for name in names if importlib.util.find_spec(name) is None] == []


_LOADED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href"}


class _Assets(HTMLParser):
    """Addresses that a browser loads to show a page, and the ids and the text of the page, without its blocks."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []
        self.ids: set[str] = set()
        self.text: list[str] = []
        self.open_blocks = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        self.ids.add(attributes.get("id") or "")
        self.open_blocks += tag == "pre"
        if tag in _LOADED and attributes.get("rel") != "canonical":
            self.addresses.append(attributes.get(_LOADED[tag]) or "")

    def handle_endtag(self, tag: str) -> None:
        self.open_blocks -= tag == "pre"

    def handle_data(self, data: str) -> None:
        if not self.open_blocks:
            self.text.append(data)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> dict[str, _Assets]:
    """Build the site and read its pages."""
    pytest.importorskip("mkdocs")
    pytest.importorskip("mkdocstrings")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    pages = {}
    for path in folder.rglob("*.html"):
        page = pages[path.relative_to(folder).as_posix()] = _Assets()
        page.feed(path.read_text(encoding="utf-8"))
    styles = [
        path
        for path in folder.rglob("*.css")
        if re.search(r"(?:url\(|@import)\s*[\"']?(?:https?:)?//", path.read_text("utf-8"))
    ]
    assert styles == []
    return pages


@pytest.mark.slow
def test_the_site_builds_and_loads_nothing_from_elsewhere(site: dict[str, _Assets]) -> None:
    """No page loads a font, a script, a style or a picture from another host."""
    assert {page.replace(".md", ".html") for page in PAGES} <= set(site)
    foreign = {name: [url for url in page.addresses if re.match(r"(?:https?:)?//", url)] for name, page in site.items()}
    assert {name: urls for name, urls in foreign.items() if urls} == {}


@pytest.mark.slow
def test_the_api_has_every_public_name(site: dict[str, _Assets]) -> None:
    """Each public name is on the page that is made from the docstrings; modules have pages of their own."""
    import shardy_py

    ids = site["reference/python/index.html"].ids
    modules = [name for name in shardy_py.__all__ if f"shardy_py.{name}" not in ids]
    assert modules == ["mpmd", "rules", "torch"]
    assert {f"reference/python/{name}.html" for name in modules} <= set(site)


@pytest.mark.slow
def test_blocks_look_like_blocks(site: dict[str, _Assets]) -> None:
    """No fence of a block and no link to a file of the repository is left in the text of a page."""
    assert [name for name, page in site.items() if re.search(r"```|\]\(", "".join(page.text))] == []


@pytest.mark.slow
def test_the_api_has_the_keywords_of_functions_that_take_values(site: dict[str, _Assets]) -> None:
    """The page shows the arguments that a caller gives, with their defaults and their help."""
    text = "".join(site["reference/python/index.html"].text)
    assert "conservative=False" in re.sub(r"\s", "", text)
    assert "Leave out factors that could be sharded unevenly." in text
