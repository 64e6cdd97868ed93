"""Texts of scalar bodies: ``x, y -> x * tanh(y)``."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from shardy_py.errors import Diagnostic, PluginError, did_you_mean
from shardy_py.plugins.bodies.body_text import INDEX_NAME, BodyText
from shardy_py.plugins.bodies.functions import FUNCTIONS
from shardy_py.sharding.einsum.text import excerpt

MAX_DEPTH = 200
"""The most expressions that are inside each other; a sum of so many terms is as deep. Reading a body is recursive."""
_EXAMPLE = 'emission="x, y -> x * tanh(y)"'
_NODES = (
    *(ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.IfExp, ast.Call, ast.Name, ast.Constant, ast.Starred),
    *(ast.Load, ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow, ast.BitAnd, ast.BitOr),
    *(ast.BitXor, ast.LShift, ast.RShift, ast.USub, ast.UAdd, ast.Not, ast.Invert, ast.And, ast.Or),
    *(ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE),
)


def parse_body(text: str, *, op: str) -> BodyText:
    """Parse the text of a scalar body.

    Args:
        text: The names of the operands, ``->``, and an expression of Python for each result.
        op: The name of the op, for errors.

    Raises:
        PluginError: it is not such a text; the error shows the column.
    """
    left, arrow, right = text.partition("->")
    if not arrow:
        hint = f"name the operands first: {_EXAMPLE}"
        raise _refused(text, "the scalar body has no '->'", op, len(text.rstrip()), hint)
    operands = tuple(_operands(text, left, op))
    start = len(left) + len(arrow)
    try:
        # Parentheses let an expression go over several lines.
        tree = ast.parse(f"({right})", mode="eval").body
    except SyntaxError as error:
        column = start + _offset(right, error.lineno or 1, (error.offset or 1) - 1)
        message = f"the scalar body is not an expression: {error.msg}"
        raise _refused(text, message, op, min(column, len(text)), _EXAMPLE) from None
    except (RecursionError, MemoryError):
        raise _too_deep(text, op, start) from None
    if _depth(tree) > MAX_DEPTH:
        raise _too_deep(text, op, start)
    is_several = isinstance(tree, ast.Tuple)
    results = tuple(tree.elts) if isinstance(tree, ast.Tuple) else (tree,)
    for node in (inner for result in results for inner in ast.walk(result)):
        column = start + _offset(right, getattr(node, "lineno", 1), getattr(node, "col_offset", 1))
        if is_several and not results:
            raise _refused(text, "the scalar body has no result", op, column, _EXAMPLE)
        _check(text, node, op, column)
    return BodyText(text, operands, results)


def _depth(tree: ast.AST) -> int:
    """Return how many parts of an expression are inside each other."""
    depth, level = 0, [tree]
    while level:
        depth += 1
        level = [child for node in level for child in ast.iter_child_nodes(node)]
    return depth


def _too_deep(text: str, op: str, column: int) -> PluginError:
    message = f"the scalar body is nested too deeply, more than {MAX_DEPTH} expressions in each other"
    return _refused(text, message, op, column, "give a function")


def _operands(text: str, left: str, op: str) -> Iterator[str]:
    names = [name.strip() for name in left.split(",")] if left.strip() else []
    column = 0
    for number, name in enumerate(names):
        bare = name[1:] if name.startswith("*") and number == len(names) - 1 else name
        if not bare.isidentifier() or bare in names[:number]:
            reason = f"{name!r} stands twice" if bare in names[:number] else f"{name!r} is not the name of an operand"
            raise _refused(text, reason, op, text.find(name, column) if name else column, _EXAMPLE)
        if bare in FUNCTIONS or INDEX_NAME.fullmatch(bare):
            meaning = "a function" if bare in FUNCTIONS else "an index of the element"
            raise _refused(text, f"{bare!r} is {meaning}", op, text.find(name, column), "give it another name")
        column = text.find(name, column) + len(name)
        yield name


def _check(text: str, node: ast.AST, op: str, column: int) -> None:
    """Check one part of an expression."""
    if not isinstance(node, _NODES):
        what = type(node).__name__
        hint = "there are operators, comparisons, a if c else b, numbers and calls of functions"
        raise _refused(text, f"a scalar body has no {what} inside", op, column, hint)
    if isinstance(node, ast.Constant) and not isinstance(node.value, int | float | complex):
        raise _refused(text, f"{node.value!r} is not a number", op, column, "")
    if isinstance(node, ast.Compare) and len(node.ops) > 1:
        raise _refused(text, "a comparison has two sides", op, column, "write a < b and b < c")
    if isinstance(node, ast.Call):
        name = getattr(node.func, "id", "")
        if name not in FUNCTIONS:
            hint = did_you_mean(name, FUNCTIONS, otherwise=f"there are {', '.join(FUNCTIONS)}")
            raise _refused(text, f"there is no function {name or 'of this kind'!r}", op, column, hint)
        if node.keywords:
            raise _refused(text, f"{name} takes no names of arguments", op, column, "")


def _offset(text: str, line: int, column: int) -> int:
    """Return the offset in the text of a line and column of its form in parentheses."""
    lines = text.splitlines(keepends=True)
    return sum(map(len, lines[: line - 1])) + column - (line == 1)


def _refused(text: str, message: str, op: str, column: int, hint: str) -> PluginError:
    return PluginError(Diagnostic("invalid-emission", message, op=op, hint=hint, excerpt=excerpt(text, column)))
