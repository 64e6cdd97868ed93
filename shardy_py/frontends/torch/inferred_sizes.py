"""Sizes of reshapes that the module infers from its tensors.

A module that runs on shards reshapes these. Where its source has -1, or flattens, or takes the size from the shape of
the tensor itself, the size follows the shard; any other size stays that of the whole tensor. Exported programs have
numbers in place of all but some -1, so the source is read.
"""

from __future__ import annotations

import ast
import linecache
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

from shardy_py.frontends.torch.places import original_target

_FRAME = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+), in [^\n]*\n(?P<code>[^\n]*)')
_Scope = tuple[ast.AST, ast.Call]
"""A function, or a line, and the call of a reshape in it."""


def inferred_dims(node: Any) -> tuple[int, ...]:
    """Return the dimensions of the result of a reshape whose sizes follow from its operand.

    Args:
        node: A node that calls a reshape with the sizes of its result.
    """
    sizes = node.args[1] if len(node.args) > 1 else node.kwargs.get("size", ())
    if not isinstance(sizes, (list, tuple)):
        return ()
    original = original_target(node) or str(node.target)
    if original.startswith("aten.flatten."):
        return tuple(range(len(sizes)))
    if -1 in sizes:
        return (list(sizes).index(-1),)
    method = original.removeprefix("aten.").partition(".")[0]
    frames = _FRAME.findall(node.meta.get("stack_trace") or "")
    if method not in ("reshape", "view") or not frames:
        return ()
    file, line, code = frames[-1]
    tree = _parsed(file, _source_of(file, int(line), code))
    dims = _dims_in_source(tree, int(line), code, method, len(sizes))
    if dims is None:
        # Exports name the lines of forward methods only: a function that one calls is not seen. What repeats heads of
        # keys and values, or changes nothing, takes the sizes from its tensor, as it serves all models.
        return tuple(range(len(sizes))) if _repeats(node) or _changes_nothing(node) else ()
    return dims


def _repeats(node: Any) -> bool:
    """Return whether a reshape merges a dimension with one that an expansion adds."""
    copied = node.args[0]
    is_copy = str(getattr(copied, "target", "")) == "aten.clone.default"
    return is_copy and str(getattr(copied.args[0], "target", "")) == "aten.expand.default"


def _changes_nothing(node: Any) -> bool:
    before, after = (getattr(item, "meta", {}).get("val") for item in (node.args[0], node))
    return before is not None and after is not None and tuple(before.shape) == tuple(after.shape)


def _source_of(file: str, line: int, code: str) -> str:
    """Return the source of a file, or "" where it is another one than that of the export."""
    lines = linecache.getlines(file)
    is_same = line <= len(lines) and lines[line - 1].strip() == code.strip()
    return "".join(lines) if is_same else ""


@lru_cache(maxsize=16)
def _parsed(file: str, source: str) -> ast.Module | None:
    try:
        return ast.parse(source, file) if source else None
    except SyntaxError:
        return None


def _dims_in_source(tree: ast.Module | None, line: int, code: str, method: str, rank: int) -> tuple[int, ...] | None:
    """Return the dimensions whose sizes follow from the tensor, by the only call of a reshape in a line, if it has one.

    >>> _dims_in_source(None, 1, "x = self.o(y.transpose(1, 2).reshape(*shape, -1))", "reshape", 3)
    (2,)
    >>> _dims_in_source(None, 1, "return y.view(y.shape[0], self.heads, y.size(1) // 2)", "view", 3)
    (0, 2)
    """
    scopes = _scopes_of_line(code) if tree is None else _scopes_in(tree, line)
    found = [scope for scope in scopes if getattr(scope[1].func, "attr", "") == method]
    if len(found) != 1:
        return () if found else None
    scope, call = found[0]
    sizes = _written_sizes(call)
    base = _base_name(call.func.value if isinstance(call.func, ast.Attribute) else call)
    stars = [number for number, item in enumerate(sizes) if isinstance(item, ast.Starred)]
    dims = []
    for number, item in enumerate(sizes):
        if number in stars or (stars and stars[0] < number < stars[-1]):
            continue
        if ast.unparse(item) == "-1" or (base and _is_of_shape(item, base, scope, call)):
            dims.append(number - len(sizes) + rank if stars and stars[-1] < number else number)
    return tuple(dims)


def _scopes_in(tree: ast.Module, line: int) -> Iterator[_Scope]:
    """Yield the calls in a line, each with the innermost function around it."""
    functions = [node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]
    around = [item for item in functions if item.lineno <= line <= (item.end_lineno or item.lineno)]
    scope = max(around, key=lambda item: item.lineno, default=None)
    if scope is None:
        return
    for node in ast.walk(scope):
        if isinstance(node, ast.Call) and node.lineno <= line <= (node.end_lineno or node.lineno):
            yield scope, node


def _scopes_of_line(code: str) -> list[_Scope]:
    text = code.strip()
    try:
        tree = ast.parse(f"{text} pass" if text.endswith(":") else text)
    except SyntaxError:
        return []
    return [(tree, node) for node in ast.walk(tree) if isinstance(node, ast.Call)]


def _written_sizes(call: ast.Call) -> Sequence[ast.expr]:
    is_function = isinstance(call.func, ast.Attribute) and ast.unparse(call.func.value) == "torch"
    sizes: Sequence[ast.expr] = call.args[1:] if is_function else call.args
    return sizes[0].elts if len(sizes) == 1 and isinstance(sizes[0], (ast.Tuple, ast.List)) else sizes


def _base_name(expression: ast.AST) -> str:
    """Return the variable whose tensor an expression is made of by methods and indices, or ""."""
    while not isinstance(expression, ast.Name):
        if isinstance(expression, (ast.Attribute, ast.Subscript)):
            expression = expression.value
        elif isinstance(expression, ast.Call) and isinstance(expression.func, ast.Attribute):
            expression = expression.func.value
        else:
            return ""
    return "" if expression.id in ("self", "torch", "F") else expression.id


def _is_of_shape(size: ast.expr, base: str, scope: ast.AST, call: ast.Call) -> bool:
    """Return whether a size is computed from the shape of a tensor that a variable holds."""
    if any(_is_shape(node, base) for node in ast.walk(size)):
        return True
    assigned = list(_assignments(scope, call))
    names = {node.id for node in ast.walk(size) if isinstance(node, ast.Name)}
    for number, (targets, value) in enumerate(assigned):
        if not names & targets or not any(_is_shape(node, base) for node in ast.walk(value)):
            continue
        after = assigned[number + 1 :]
        is_last = not any(names & targets & later for later, _ in after)
        # A variable that is given another tensor in between has another shape.
        if is_last and all(base not in later or _base_name(other) == base for later, other in after):
            return True
    return False


def _is_shape(node: ast.AST, base: str) -> bool:
    is_shape = isinstance(node, ast.Attribute) and node.attr in ("shape", "size")
    return is_shape and _base_name(node.value) == base  # type: ignore[attr-defined]


def _assignments(scope: ast.AST, call: ast.Call) -> Iterator[tuple[set[str], ast.expr]]:
    """Yield the variables that the statements before a call assign, with what they assign, in order."""
    statements = [node for node in ast.walk(scope) if isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign))]
    for node in sorted(statements, key=lambda item: item.lineno):
        if node.value is None or (node.end_lineno or node.lineno) >= call.lineno:
            continue
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        yield {own.id for target in targets for own in ast.walk(target) if isinstance(own, ast.Name)}, node.value
