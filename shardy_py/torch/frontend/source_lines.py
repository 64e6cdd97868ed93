"""The source of the line that a node of an exported program comes from.

Exports name the lines of ``forward`` methods only: a function that one calls is not seen.
"""

from __future__ import annotations

import ast
import linecache
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from shardy_py.values import frozen

_FRAME = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+), in [^\n]*\n(?P<code>[^\n]*)')


@frozen(eq=False)
class SourceLine:
    """A line with the function around it; the line alone, where its file is another one than that of the export.

    Args:
        scope: The function, or the statement of the line.
        line: The number of the line in the scope.
    """

    scope: ast.AST
    line: int

    def expressions(self) -> Iterator[ast.AST]:
        """Yield the nodes of the expressions that lie in the line."""
        for node in ast.walk(self.scope):
            first = getattr(node, "lineno", None)
            if first is not None and first <= self.line <= (node.end_lineno or first):  # type: ignore[attr-defined]
                yield node

    def assignments(self) -> Iterator[tuple[ast.expr, ast.expr]]:
        """Yield the targets that the statements before the line assign, with what they assign, in order."""
        statements = [
            node for node in ast.walk(self.scope) if isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign))
        ]
        for node in sorted(statements, key=lambda item: item.lineno):
            if node.value is not None and (node.end_lineno or node.lineno) < self.line:
                for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                    yield target, node.value


def source_line_of(node: Any) -> SourceLine | None:
    """Return the line of a node, or None where the program does not say it."""
    frames = _FRAME.findall(node.meta.get("stack_trace") or "")
    if not frames:
        return None
    file, line, code = frames[-1][0], int(frames[-1][1]), frames[-1][2]
    lines = linecache.getlines(file)
    is_same = line <= len(lines) and lines[line - 1].strip() == code.strip()
    scope = _function_at(file, "".join(lines), line) if is_same else None
    return SourceLine(scope, line) if scope is not None else line_of_code(code)


def line_of_code(code: str) -> SourceLine | None:
    """Return a line of which only the code is known, or None where it is no whole statement."""
    text = code.strip()
    try:
        return SourceLine(ast.parse(f"{text} pass" if text.endswith(":") else text), 1)
    except SyntaxError:
        return None


@lru_cache(maxsize=4096)
def _function_at(file: str, source: str, line: int) -> ast.AST | None:
    tree = _parsed(file, source)
    functions = [node for node in ast.walk(tree or ast.Module([], [])) if isinstance(node, ast.FunctionDef)]
    around = [item for item in functions if item.lineno <= line <= (item.end_lineno or item.lineno)]
    return max(around, key=lambda item: item.lineno, default=None)


@lru_cache(maxsize=16)
def _parsed(file: str, source: str) -> ast.Module | None:
    try:
        return ast.parse(source, file)
    except SyntaxError:
        return None
