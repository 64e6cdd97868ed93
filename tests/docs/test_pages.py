"""Everything the documentation shows runs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.docs.pages import (
    IN_A_COPY,
    PAGES,
    ROOT,
    RUN,
    SHOWN,
    changed_files,
    find_blocks,
    listed_files,
    run_page,
)

pytest.importorskip("jaxlib", reason="the pages propagate MLIR modules")

SLOW = (
    "docs/contributing",
    "docs/how-to/advise.md",
    "docs/how-to/bring-your-own-ir.md",
    "docs/how-to/check-results.md",
    "docs/how-to/compare-schedules.md",
    "docs/how-to/estimate-cost.md",
    "docs/how-to/explore.md",
    "docs/how-to/find-missing-rules.md",
    "docs/how-to/from-jax-jit.md",
    "docs/how-to/give-an-op-a-kernel.md",
    "docs/how-to/give-shardings.md",
    "docs/how-to/gspmd.md",
    "docs/how-to/kernels.md",
    "docs/how-to/local-programs.md",
    "docs/how-to/look-at-every-pass.md",
    "docs/how-to/priorities.md",
    "docs/how-to/read-the-result.md",
    "docs/how-to/run-on-devices.md",
    "docs/how-to/see-padding.md",
    "docs/how-to/studies.md",
    "docs/how-to/why-this-sharding.md",
    "docs/explanation/warps.md",
)
"""Pages that run with the longer tests: those that change a copy of the checkout, or start many commands."""
TORCH = (
    "docs/explanation/llama.md",
    "docs/how-to/programs-from-pytorch.md",
    "docs/how-to/train-pytorch.md",
    "docs/tutorial/from-a-module-to-four-processes.md",
)
"""Pages that need PyTorch."""


def _page(page: Path) -> Any:
    marks = [pytest.mark.slow] if any(page.is_relative_to(ROOT / name) for name in SLOW) else []
    marks += [pytest.mark.torch] if any(page.is_relative_to(ROOT / name) for name in TORCH) else []
    return pytest.param(page, marks=marks, id=str(page.relative_to(ROOT)))


def _pages() -> list[Any]:
    """Return all pages; those with some blocks that need PyTorch run once more where it is installed."""
    pages = [page for page in PAGES if any(block.options.get("needs") == "torch" for block in find_blocks(page))]
    torch_pages = [pytest.param(page, marks=pytest.mark.torch, id=f"{page.relative_to(ROOT)}-torch") for page in pages]
    return [*(_page(page) for page in PAGES), *torch_pages]


_LINK = re.compile(r"\]\((?!https?://|#)([^)#]+)")
MAX_LINKS = 10
"""The most links of a way into the documentation."""


@pytest.mark.parametrize("page", _pages())
def test_every_block_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each fenced block does what the page says it does."""
    monkeypatch.chdir(tmp_path)
    assert run_page(page, tmp_path) == len(find_blocks(page))
    if IN_A_COPY in page.parents:
        assert sorted(changed_files(tmp_path)) == sorted(listed_files(page))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_block_escapes(page: Path) -> None:
    """Each fenced block has a language that is either run or meant to be looked at only."""
    assert [block.place for block in find_blocks(page) if block.language not in (*RUN, *SHOWN)] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_files_are_named(page: Path) -> None:
    """Each block that later ones read as a file is called by the file's name in the lines before it."""
    lines = page.read_text(encoding="utf-8").splitlines()
    files = [block for block in find_blocks(page) if "file" in block.options]
    unnamed = [block for block in files if f"`{block.options['file']}`" not in "\n".join(lines[: block.line][-9:])]
    assert [block.place for block in unnamed] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    """Each relative link names a file that exists."""
    links = _LINK.findall(page.read_text(encoding="utf-8"))
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_the_index_is_three_ways_in() -> None:
    """The index has a way for each kind of reader, of few links, and leads to the list of all pages."""
    text = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    head, *ways = re.split(r"^## ", text, flags=re.MULTILINE)
    counts = {way.splitlines()[0]: len(_LINK.findall(way)) for way in ways}
    assert len(counts) == 3
    assert {way: count for way, count in counts.items() if not 0 < count <= MAX_LINKS} == {}
    assert "all-pages.md" in _LINK.findall(head)


def test_the_list_of_pages_has_every_page() -> None:
    """Each page of the documentation is linked from the list of all pages, to which the index leads."""
    folder = ROOT / "docs"
    linked = set(_LINK.findall((folder / "all-pages.md").read_text(encoding="utf-8")))
    pages = {str(path.relative_to(folder)) for path in folder.rglob("*.md")} - {"index.md", "all-pages.md"}
    assert linked == pages
