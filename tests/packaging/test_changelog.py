"""The changelog has the form of Keep a Changelog and knows the version of the package."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
RELEASE = re.compile(r"^## \[(\d+\.\d+\.\d+)\] - (\d{4}-\d\d-\d\d)$", re.MULTILINE)
KINDS = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}


def test_the_unreleased_part_comes_first() -> None:
    """The first part is what no release has yet; each part after it has a version and a day."""
    first, *others = re.findall(r"^## .*$", TEXT, re.MULTILINE)
    assert first == "## [Unreleased]"
    assert [heading for heading in others if not RELEASE.match(heading)] == []


def test_releases_go_from_new_to_old() -> None:
    """Versions and days fall down the page, and the newest version is that of the package."""
    releases = RELEASE.findall(TEXT)
    order = [(tuple(map(int, version.split("."))), day) for version, day in releases]
    assert order == sorted(order, reverse=True)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert releases[0][0] == project["version"]


def test_changes_have_a_kind() -> None:
    """Each heading inside a part is one of the kinds of changes, at most once per part."""
    for part in re.split(r"^## ", TEXT, flags=re.MULTILINE)[1:]:
        kinds = re.findall(r"^### (.*)$", part, re.MULTILINE)
        assert set(kinds) <= KINDS
        assert len(kinds) == len(set(kinds))


def test_each_change_has_a_file_of_its_own() -> None:
    """Each file of ``changes`` names its change and its kind, and holds one entry, without a bullet."""
    files = sorted(path for path in (ROOT / "changes").iterdir() if path.name != "README.md")
    kinds = "|".join(kind.lower() for kind in sorted(KINDS))
    assert [
        path.name
        for path in files
        if not re.fullmatch(rf"(\d+|\+[a-z0-9-]+)(\.\d+)?\.({kinds})(\.\d+)?\.md", path.name)
    ] == []
    texts = {path.name: path.read_text(encoding="utf-8").strip() for path in files}
    assert [name for name, text in texts.items() if not text or text.startswith(("-", "*", "#"))] == []
