"""The ops of the dialects func and sdy have their names in one module."""

from __future__ import annotations

import ast
from pathlib import Path

import shardy_py
from shardy_py.ir.graph import op_names

_NAMES = {name for name in vars(op_names).values() if isinstance(name, str) and name.startswith(("func.", "sdy."))}


def _spelled(path: Path) -> list[str]:
    """Return the places of a module at which a string is the name of an op, docstrings aside."""
    source = path.read_text()
    if not any(name in source for name in _NAMES):
        return []
    actual = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Constant) and node.value in _NAMES]
    return [f"{path.name}:{node.lineno} {node.value}" for node in actual]


def test_op_names_are_spelled_once() -> None:
    """Other modules take the names of ops from `shardy_py.ir.graph.op_names`."""
    names_file = Path(op_names.__file__)
    spelled = {path: _spelled(path) for path in Path(shardy_py.__path__[0]).rglob("*.py")}
    assert len(spelled.pop(names_file)) == len(_NAMES) > 20
    assert [place for places in spelled.values() for place in places] == []
