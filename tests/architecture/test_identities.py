"""Who asks for identities."""

from __future__ import annotations

import ast
import re
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[2] / "shardy_py"


def test_identities_are_those_of_the_module_for_them() -> None:
    """No other module uses `id`: it is slow where a library listens, and its numbers are others."""
    users = set()
    for path in sorted(PACKAGE.rglob("*.py")):
        source = path.read_text()
        if not re.search(r"(?<![.\w])id\b(?! *=[^=])", source):
            continue
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Name) and node.id == "id" and isinstance(node.ctx, ast.Load):
                users.add(path.relative_to(PACKAGE).as_posix())
    assert users == {"support/identity.py"}
