"""The page about the architecture, and CONTRIBUTING, describe the rooms, lanes and commands that there are."""

from __future__ import annotations

import re
import tomllib
from itertools import takewhile

import pytest

from tests.docs.pages import ROOT

PAGE = (ROOT / "docs" / "explanation" / "architecture.md").read_text(encoding="utf-8")
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
LAYERS = next(item for item in PROJECT["tool"]["importlinter"]["contracts"] if item["type"] == "layers")["layers"]
LEAVES = {name for layer in takewhile(lambda layer: layer != "cli", LAYERS) for name in layer.split(" | ")}


def _sections(level: str, text: str = PAGE) -> dict[str, str]:
    """Return the text of each section of a level, by its heading."""
    matches = re.finditer(rf"^{level} ([^\n]+)\n(.*?)(?=^{level} |\Z)", text, re.MULTILINE | re.DOTALL)
    return {match[1].strip("`"): match[2] for match in matches}


def test_the_page_has_every_room_from_the_ground_up() -> None:
    """Rooms stand in the order of the layers, the lowest first, leaves under a heading of their own."""
    rank = {name: number for number, layer in enumerate(reversed(LAYERS)) for name in layer.split(" | ")}
    parts = _sections("##")
    core, leaves = (list(_sections("###", parts[title])) for title in ("The core", "The leaves"))
    assert set(leaves) == LEAVES
    assert set(core) == set(rank) - LEAVES
    ranks = [rank[name] for name in core]
    assert ranks == sorted(ranks)


def test_the_page_says_which_leaves_a_leaf_imports() -> None:
    """What the sections of leaves name is what their files import."""
    grimp = pytest.importorskip("grimp", reason="import-linter brings it")
    graph = grimp.build_graph("shardy_py", exclude_type_checking_imports=True)
    imports: dict[str, set[str]] = {name: set() for name in LEAVES}
    for module in graph.modules:
        room = module.split(".")[1:2]
        if room and room[0] in LEAVES:
            others = {name.split(".")[1] for name in graph.find_modules_directly_imported_by(module) if "." in name}
            imports[room[0]] |= (others & LEAVES) - set(room)
    texts = _sections("###", _sections("##")["The leaves"])
    documented = {
        name: set(re.findall(r"`(\w+)`", re.findall(r"Imports ([^.]+)\.", text)[0])) for name, text in texts.items()
    }
    assert documented == imports


def test_files_on_the_page_exist() -> None:
    """Each room within a room, and each file, that the page names is there."""
    names = [name for name in re.findall(r"`([a-z_]+/[\w/.]+)`", PAGE) if not name.startswith("dialects/")]
    assert len(names) > 10
    assert [name for name in names if not (ROOT / "shardy_py" / name).exists()] == []


def test_each_room_is_open_to_dialects_or_closed() -> None:
    """The plugin surface is a list of rooms; a new one is put on either side."""
    contracts = {item["name"]: item for item in PROJECT["tool"]["importlinter"]["contracts"]}
    closed = set(contracts["A dialect imports the plugin surface only"]["forbidden_modules"])
    rooms = {f"shardy_py.{name}" for layer in LAYERS for name in layer.split(" | ")}
    surface = {"errors", "guards", "indexing", "ir", "moved_modules", "plugins", "schedule", "sharding", "support"}
    assert rooms - closed == {f"shardy_py.{name}" for name in (*surface, "values")}


def test_contributing_has_every_check() -> None:
    """The table of sessions is that of `noxfile.py`, in which the commands of the checks are."""
    source = (ROOT / "noxfile.py").read_text(encoding="utf-8")
    checks = re.findall(r'"(\w+)"', re.findall(r"^CHECKS = \((.+?)^\)", source, re.MULTILINE | re.DOTALL)[0])
    table = CONTRIBUTING.partition("| session |")[2].partition("\n\n")[0]
    cells = re.findall(r"^\| (`.+?) \|", table, re.MULTILINE)
    assert [name for cell in cells for name in re.findall(r"`(\w+)`", cell)] == checks


def test_contributing_has_every_marker() -> None:
    """The markers of pytest that leave tests out by default are named."""
    markers = {item.partition(":")[0] for item in PROJECT["tool"]["pytest"]["ini_options"]["markers"]}
    line = next(line for line in CONTRIBUTING.splitlines() if "markers of pytest" in line)
    assert set(re.findall(r"`(\w+)`", line)) == markers


def test_contributing_names_files_that_exist() -> None:
    """Files and folders of the checkout that CONTRIBUTING names are there."""
    names = set(re.findall(r"`((?:\.ci|changes|docs|shardy_py|dialects|tests)/[\w./-]*)`", CONTRIBUTING))
    assert len(names) > 5
    assert [name for name in sorted(names) if not (ROOT / name).exists()] == []


def test_contributing_leads_to_every_guide() -> None:
    """Each page for contributors is linked."""
    pages = {f"docs/contributing/{path.name}" for path in (ROOT / "docs" / "contributing").glob("*.md")}
    assert set(re.findall(r"\((docs/contributing/[\w-]+\.md)\)", CONTRIBUTING)) == pages
