"""One class name, one meaning in the whole package."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("shardy_py", "dialects")


def public_classes(source: str) -> Iterator[str]:
    """Yield the names of the public classes at the top level of a module."""
    yield from re.findall(r"^class ([^\W_]\w*)", source, re.MULTILINE)


def homonyms(sources: Mapping[str, str]) -> dict[str, list[str]]:
    """Return the names of public classes that several modules define, with these modules."""
    modules = defaultdict(list)
    for module, source in sorted(sources.items()):
        for name in public_classes(source):
            modules[name].append(module)
    return {name: defining for name, defining in sorted(modules.items()) if len(defining) > 1}


def test_a_class_name_has_one_meaning() -> None:
    """A second class gets a qualified name: `CostFusion` beside `Fusion`."""
    files = [path for package in PACKAGES for path in (ROOT / package).rglob("*.py")]
    assert len(files) > 500
    assert homonyms({str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in files}) == {}


def test_a_second_meaning_is_seen() -> None:
    """Private classes and those inside of others do not count."""
    sources = {
        "a.py": "class Fusion:\n    class Kind: ...\nclass _Row: ...\nclass Layout: ...",
        "b.py": "class Fusion: ...\nclass Kind: ...\nclass _Row: ...",
    }
    assert homonyms(sources) == {"Fusion": ["a.py", "b.py"]}
