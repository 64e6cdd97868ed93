"""Places where a module reads the size of a shard, and decides or makes something by it.

An exported program has numbers in place of sizes, and only the branch that was taken. A module that runs by a plan
reads the size again, of its shard: an ``if`` may go the other way, and ``torch.full`` gets another number. So the
source is read: what a statement assigns that makes a shard, and each function of the same file that gets it.
"""

from __future__ import annotations

import ast
import linecache
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache

from shardy_py.support.identity import identity
from shardy_py.values import frozen

_TESTS = (ast.If, ast.While, ast.IfExp, ast.Assert)
_CREATIONS = frozenset(
    ("arange", "empty", "eye", "full", "linspace", "ones", "rand", "randint", "randn", "randperm", "tensor")
) | {"zeros", "new_empty", "new_full", "new_ones", "new_tensor", "new_zeros", "as_tensor", "tril_indices"}
_RESHAPES = frozenset(("expand", "flatten", "repeat", "reshape", "unflatten", "view"))
_DEPTH = 4
"""The number of calls that are followed from function to function."""


@frozen
class ShardSource:
    """A tensor that each process has a shard of, and where the source makes or uses it.

    Args:
        location: The location, ``file:line``.
        dim: The sharded dimension.
        rank: The rank of the tensor.
        layers: The layers that it is sharded by.
        is_result: Whether the line makes it; otherwise the line uses it.
    """

    location: str
    dim: int
    rank: int
    layers: frozenset[str]
    is_result: bool


@frozen
class SizeRead:
    """A read of the size of a shard that changes what a module does.

    Args:
        location: The location, ``file:line``.
        reason: What depends on it, as the end of a sentence.
        layers: The layers of the shard.
    """

    location: str
    reason: str
    layers: frozenset[str]


_Shards = dict[str, set[ShardSource]]
"""Name of a variable to the shards that it may hold."""


def find_size_reads(sources: Iterable[ShardSource]) -> list[SizeRead]:
    """Return the reads of sizes of shards by which a module decides something, in the order of the source.

    Args:
        sources: The shards of a process.
    """
    by_function: dict[tuple[str, int], tuple[ast.FunctionDef, _Shards]] = {}
    for source in sources:
        file, _, line = source.location.rpartition(":")
        function = _function_at(file, int(line)) if line.isdigit() else None
        if function is None:
            continue
        _, shards = by_function.setdefault((file, function.lineno), (function, {}))
        for name in _names_at(function, int(line), is_result=source.is_result):
            shards.setdefault(name, set()).add(source)
        _follow_calls(file, function, int(line), source, by_function, _DEPTH)
    reads = [read for (file, _), (function, shards) in by_function.items() for read in _reads(file, function, shards)]
    return sorted(dict.fromkeys(reads), key=lambda read: (read.location, read.reason, sorted(read.layers)))


def _follow_calls(
    file: str,
    function: ast.FunctionDef,
    line: int,
    source: ShardSource,
    by_function: dict[tuple[str, int], tuple[ast.FunctionDef, _Shards]],
    depth: int,
) -> None:
    """Note the parameters of the functions of the same file that a line calls: each may get the shard."""
    names = {_called(node) for node in _nodes_at(function, line)} - {None, "forward", function.name}
    callees = [item for item in _all_functions(file) if item.name in names] if depth else []
    for callee in callees:
        _, shards = by_function.setdefault((file, callee.lineno), (callee, {}))
        parameters = [item.arg for item in (*callee.args.args, *callee.args.kwonlyargs) if item.arg != "self"]
        for parameter in parameters:
            shards.setdefault(parameter, set()).add(source)
        calls = {item.lineno for item in ast.walk(callee) if isinstance(item, ast.Call)}
        for inner in sorted(calls):
            _follow_calls(file, callee, inner, source, by_function, depth - 1)


def _reads(file: str, function: ast.FunctionDef, shards: Mapping[str, set[ShardSource]]) -> Iterator[SizeRead]:
    """Yield the reads of a function that decide something."""
    sizes: dict[str, frozenset[str]] = {}

    def layers_in(expression: ast.AST) -> frozenset[str]:
        read_layers: frozenset[str] = frozenset()
        for node in _outside_reshapes(expression):
            read_layers |= _layers_of_size(node, shards)
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                read_layers |= sizes.get(node.id, frozenset())
        return read_layers

    for _ in range(2):
        # Twice, as a loop may read at its begin what its end assigns.
        for node in ast.walk(function):
            if isinstance(node, ast.Assign) and not any(map(_is_tensor_call, ast.walk(node.value))):
                for target in node.targets:
                    _assign(target, node.value, shards, sizes, layers_in(node.value))
    for node in ast.walk(function):
        for expression, reason in _decisions(node):
            layers = layers_in(expression)
            if layers:
                yield SizeRead(f"{file}:{expression.lineno}", reason, layers)


def _decisions(node: ast.AST) -> Iterator[tuple[ast.expr, str]]:
    """Yield the expressions of a node by which a module decides or makes something."""
    if isinstance(node, _TESTS):
        yield node.test, "decides by the size of a shard"
    elif isinstance(node, (ast.For, ast.comprehension)):
        yield node.iter, "repeats something as often as the size of a shard says"
    elif isinstance(node, ast.Call) and _called(node) in _CREATIONS:
        arguments = (*node.args, *(item.value for item in node.keywords))
        yield from ((argument, "makes a tensor of the size of a shard, or from it") for argument in arguments)


def _assign(
    target: ast.expr,
    value: ast.expr,
    shards: Mapping[str, set[ShardSource]],
    sizes: dict[str, frozenset[str]],
    layers: frozenset[str],
) -> None:
    """Note the names that an assignment gives sizes of shards; of an unpacked shape, the sharded dimension's only."""
    if isinstance(target, ast.Name) and layers:
        sizes[target.id] = sizes.get(target.id, frozenset()) | layers
    if isinstance(target, (ast.Tuple, ast.List)):
        count = len(target.elts)
        for source in _sources_of_shape(value, shards):
            element = target.elts[source.dim] if source.rank == count else None
            if isinstance(element, ast.Name):
                name = element.id
                sizes[name] = sizes.get(name, frozenset()) | source.layers


def _layers_of_size(node: ast.AST, shards: Mapping[str, set[ShardSource]]) -> frozenset[str]:
    """Return the layers of the shards whose size along the sharded dimension a node reads."""
    index: int | None = None
    shape_node = node
    if isinstance(node, ast.Subscript):
        index, shape_node = _constant(node.slice), node.value
    elif isinstance(node, ast.Call) and _called(node) == "size" and isinstance(node.func, ast.Attribute) and node.args:
        index, shape_node = _constant(node.args[0]), ast.Attribute(node.func.value, "shape", ast.Load())
    elif isinstance(node, ast.Call) and _called(node) == "numel" and isinstance(node.func, ast.Attribute):
        return _layers(shards.get(_name(node.func.value), ()))
    elif isinstance(node, ast.Call) and _called(node) == "len" and node.args:
        return _layers(item for item in shards.get(_name(node.args[0]), ()) if item.dim == 0)
    else:
        return frozenset()
    sources = _sources_of_shape(shape_node, shards)
    return _layers(item for item in sources if index is None or index in (item.dim, item.dim - item.rank))


def _sources_of_shape(node: ast.AST, shards: Mapping[str, set[ShardSource]]) -> Iterable[ShardSource]:
    """Return the shards whose shape an expression is."""
    if (
        isinstance(node, ast.Call)
        and _called(node) == "size"
        and not node.args
        and isinstance(node.func, ast.Attribute)
    ):
        return shards.get(_name(node.func.value), ())
    if isinstance(node, ast.Attribute) and node.attr == "shape":
        return shards.get(_name(node.value), ())
    return ()


def _layers(sources: Iterable[ShardSource]) -> frozenset[str]:
    return frozenset(path for source in sources for path in source.layers)


def _outside_reshapes(expression: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of an expression but the arguments of reshapes, whose sizes follow the shard."""
    yield expression
    for child in ast.iter_child_nodes(expression):
        if not (isinstance(expression, ast.Call) and _called(expression) in _RESHAPES and child is not expression.func):
            yield from _outside_reshapes(child)


def _is_tensor_call(node: ast.AST) -> bool:
    """Return whether a node calls a reshape: what it gives is a tensor and no size."""
    return isinstance(node, ast.Call) and _called(node) in _RESHAPES


def _names_at(function: ast.FunctionDef, line: int, *, is_result: bool) -> set[str]:
    """Return the variables that the statement of a line assigns, or those that the line reads."""
    if not is_result:
        names = (node.id for node in _nodes_at(function, line) if isinstance(node, ast.Name))
        return {name for name in names if name != "self"}
    targets: set[str] = set()
    for node in _nodes_at(function, line):
        if isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.NamedExpr)):
            items = node.targets if isinstance(node, ast.Assign) else [node.target]
            targets |= {name.id for item in items for name in ast.walk(item) if isinstance(name, ast.Name)}
    return targets


def _nodes_at(function: ast.FunctionDef, line: int) -> list[ast.AST]:
    """Return the nodes of the innermost statement of a line."""
    statements = [
        node
        for node in ast.walk(function)
        if isinstance(node, ast.stmt) and node is not function and node.lineno <= line <= (node.end_lineno or line)
    ]
    if not statements:
        return []
    innermost = max(statements, key=lambda node: (node.lineno, -(node.end_lineno or node.lineno)))
    # Of a compound statement only the line itself, not its body.
    body = {identity(inner) for item in getattr(innermost, "body", ()) for inner in ast.walk(item)}
    return [node for node in ast.walk(innermost) if identity(node) not in body]


def _called(node: ast.AST) -> str | None:
    """Return the name of the function or method that a node calls."""
    if not isinstance(node, ast.Call):
        return None
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", None)


def _name(node: ast.AST) -> str:
    return node.id if isinstance(node, ast.Name) else ""


def _constant(node: ast.AST) -> int | None:
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError):
        return None
    return value if type(value) is int else None


def _function_at(file: str, line: int) -> ast.FunctionDef | None:
    around = [item for item in _all_functions(file) if item.lineno <= line <= (item.end_lineno or item.lineno)]
    return max(around, key=lambda item: item.lineno, default=None)


def _all_functions(file: str) -> tuple[ast.FunctionDef, ...]:
    """Return the functions and methods of a file."""
    return _parsed(file, "".join(linecache.getlines(file)))


@lru_cache(maxsize=64)
def _parsed(file: str, source: str) -> tuple[ast.FunctionDef, ...]:
    try:
        tree = ast.parse(source, file)
    except SyntaxError:
        return ()
    return tuple(node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))
