"""Summaries of docstrings are nouns and verbs of the field."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ROOMS = (
    "benchmarks",
    "dialects/shardy_dialects",
    *sorted(f"shardy_py/{path.name}" for path in (ROOT / "shardy_py").iterdir() if (path / "__init__.py").exists()),
)
"""The folders whose summaries are checked."""

BEGINNING = re.compile(r"(what|who|whoever|how|whether|which|where|when|whose|whatever|why)\b", re.IGNORECASE)
PHRASE = re.compile(r"\b(likewise|see there)\b", re.IGNORECASE)


def docstrings(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the docstrings of a file with their lines, those below constants included."""
    for node in ast.walk(ast.parse(path.read_text())):
        body = getattr(node, "body", None)
        for statement in body if isinstance(body, list) else ():
            if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
                text = statement.value.value
                if isinstance(text, str):
                    yield statement.lineno, text.strip()


def problems(path: Path) -> list[str]:
    """Return the docstrings of a file that are questions or refer to another one."""
    return [
        f"{path.relative_to(ROOT)}:{line}: {text.splitlines()[0]}"
        for line, text in docstrings(path)
        if text and (BEGINNING.match(text) or PHRASE.search(text))
    ]


@pytest.mark.parametrize("room", ROOMS)
def test_summaries_name_things(room: str) -> None:
    """No docstring begins with a question word, and none says "likewise" or "see there"."""
    files = sorted((ROOT / room).rglob("*.py"))
    assert files
    assert [problem for path in files for problem in problems(path)] == []


def test_questions_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The check finds modules, classes, functions and constants that say what instead of naming it."""
    monkeypatch.setattr(f"{__name__}.ROOT", tmp_path)
    path = tmp_path / "m.py"
    path.write_text(
        '"""What is here."""\nX = 1\n"""How large it is."""\n'
        'class A:\n    """A thing."""\n'
        '    def f(self):\n        """Do it.\n\n        Args:\n            x: See there.\n        """\n'
    )
    assert [problem.split(": ")[0] for problem in problems(path)] == ["m.py:1", "m.py:3", "m.py:7"]
