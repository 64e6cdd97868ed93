"""A constraint as a change of a line of the source: it stands around the expression that makes the tensor.

JAX tells of an op the line and the column at which its expression begins. Of operators that begin there, such as those
of ``a * b + c``, the outermost makes the tensor. Where other expressions begin there, or the line is not there any
more, nothing is proposed but the constraint itself.
"""

from __future__ import annotations

import ast
import linecache
from functools import lru_cache

_PARTS = 3
"""The parts of a place: file, line and column."""


def changed_line(location: str, code: str) -> tuple[str, str] | None:
    """Return the line of a place as it is and with a constraint; None where that is not clear.

    Args:
        location: The place, ``file:line:column``, with the column from 0 on.
        code: The constraint of ``x`` as a statement, ``x = constrain(x, ...)``.
    """
    file, *place = location.rsplit(":", _PARTS - 1)
    if len(place) != _PARTS - 1 or not all(part.isdecimal() for part in place) or not code.startswith("x = "):
        return None
    number, column = map(int, place)
    text = linecache.getline(file, number).rstrip("\n")
    expressions = _expressions("".join(linecache.getlines(file))).get(number, ())
    ends = {end: is_operator for start, end, is_operator in expressions if start == column}
    end = max(ends, default=0)
    if not ends or (len(ends) > 1 and not ends[end]):
        return None
    line = text.encode()
    expression = line[column:end].decode()
    constrained = code.removeprefix("x = ").replace("(x,", f"({expression},", 1)
    return text, (line[:column] + constrained.encode() + line[end:]).decode()


@lru_cache(maxsize=8)
def _expressions(source: str) -> dict[int, list[tuple[int, int, bool]]]:
    """Return the expressions of a source that stand in one line and compute something, by line.

    Each is its first column, the column behind it, and whether it is an operator with operands.
    """
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return {}
    lines: dict[int, list[tuple[int, int, bool]]] = {}
    for node in ast.walk(tree):
        if isinstance(node, (ast.BinOp, ast.Call, ast.Compare, ast.Subscript, ast.UnaryOp)):
            is_target = isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load)
            if node.end_lineno == node.lineno and node.end_col_offset is not None and not is_target:
                is_operator = isinstance(node, (ast.BinOp, ast.Compare))
                lines.setdefault(node.lineno, []).append((node.col_offset, node.end_col_offset, is_operator))
    return lines
