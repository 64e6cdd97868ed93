"""Provenance: the page about upstream lists what the docstrings say they mirror."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "explanation" / "upstream.md"
FOLDERS = ("shardy_py", "dialects/shardy_dialects")

MIRRORED = re.compile(r"\b[A-Za-z_]\w*(?:\.\w+)?(?:::\w+)+")
ROW = re.compile(r"\| `(?P<file>[\w/]+\.py)` \| (?P<names>`[^|]+`) \| `(?P<commit>[0-9a-f]{8})` \|")


def mirrored_names(path: Path) -> set[str]:
    """Return the names of upstream in the paragraphs of a file's docstrings that begin with "Mirrors"."""
    collected: set[str] = set()
    text = path.read_text()
    for node in ast.walk(ast.parse(text)) if "Mirrors " in text else ():
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)):
            for paragraph in (ast.get_docstring(node) or "").split("\n\n"):
                if paragraph.startswith("Mirrors "):
                    collected.update(MIRRORED.findall(paragraph))
    return collected


def rows_of_docstrings() -> dict[str, list[str]]:
    """Return file to the sorted names of upstream, for all files that mirror something."""
    paths = sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))
    actual = {path.relative_to(ROOT).as_posix(): sorted(mirrored_names(path)) for path in paths}
    return {file: names for file, names in actual.items() if names}


def rows_of_page() -> dict[str, list[str]]:
    """Return file to the names of upstream in the table of the page."""
    rows = [match for line in PAGE.read_text().splitlines() if (match := ROW.fullmatch(line))]
    assert len({row["file"] for row in rows}) == len(rows), "a file has two rows"
    return {row["file"]: re.findall(r"`([^`]+)`", row["names"]) for row in rows}


def write_rows() -> None:
    """Write the table of the page anew from the docstrings; files that have a row keep their commit."""
    text = PAGE.read_text()
    rows = [match for line in text.splitlines() if (match := ROW.fullmatch(line))]
    commits = {row["file"]: row["commit"] for row in rows}
    newest = rows[0]["commit"]
    table = [
        f"| `{file}` | {', '.join(f'`{name}`' for name in names)} | `{commits.get(file, newest)}` |"
        for file, names in rows_of_docstrings().items()
    ]
    PAGE.write_text("\n".join([text[: text.index(rows[0][0])].rstrip("\n"), *table]) + "\n")


def test_the_page_lists_what_docstrings_mirror() -> None:
    """Each file with a "Mirrors" line has one row with the same names, and no row is about another file."""
    expected = rows_of_docstrings()
    assert len(expected) > 50
    assert rows_of_page() == expected


def test_every_pass_of_the_reference_says_where_it_comes_from() -> None:
    """Each file of prepare and finish with a pass named ``sdy-...`` mirrors something."""
    rows, transforms = rows_of_docstrings(), ROOT / "shardy_py" / "transforms"
    passes = [path for path in transforms.glob("*/*.py") if is_pass_of_reference(path)]
    assert len(passes) > 20
    assert [str(path) for path in passes if path.relative_to(ROOT).as_posix() not in rows] == []


def is_pass_of_reference(path: Path) -> bool:
    """Return whether a file defines a pass that has its name from the reference."""
    return re.search(r'name: ClassVar\[str\] = "sdy-', path.read_text()) is not None


if __name__ == "__main__":
    write_rows()
