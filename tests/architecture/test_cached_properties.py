"""Cached properties need a ``__dict__``: attrs before 23.2 makes none for a class with slots."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_MAKERS = ("define", "frozen")


def slotted_classes(source: str) -> Iterator[str]:
    """Yield the names of the classes of attrs that have slots and a cached property."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.ClassDef) or not any(_makes_slots(item) for item in node.decorator_list):
            continue
        methods = [item for item in node.body if isinstance(item, ast.FunctionDef)]
        if any("cached_property" in map(ast.unparse, method.decorator_list) for method in methods):
            yield node.name


def _makes_slots(decorator: ast.expr) -> bool:
    text = ast.unparse(decorator)
    return text.partition("(")[0] in _MAKERS and "slots=False" not in text


def test_classes_with_cached_properties_have_no_slots() -> None:
    """The lowest version of attrs makes them, too."""
    files = [path for package in ("shardy_py", "dialects") for path in (ROOT / package).rglob("*.py")]
    sources = {str(path): path.read_text(encoding="utf-8") for path in files}
    relevant = {path: source for path, source in sources.items() if "cached_property" in source}
    assert len(relevant) > 20
    assert [path for path, source in relevant.items() for _ in slotted_classes(source)] == []


def test_a_class_with_slots_is_seen() -> None:
    """What says ``slots=False``, and what attrs does not make, counts not."""
    body = ":\n    @cached_property\n    def size(self): ...\n"
    heads = "@frozen\nclass A", "@define(eq=False)\nclass B", "@define(slots=False)\nclass C", "class D"
    assert list(slotted_classes("".join(f"{head}{body}" for head in heads))) == ["A", "B"]
