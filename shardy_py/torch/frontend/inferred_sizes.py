"""Sizes and numbers that the module computes from its tensors.

A module that runs on shards reshapes these. Where its source has -1, or flattens, or takes the size from the shape of
the tensor itself, the size follows the shard; any other size stays that of the whole tensor. A number that is computed
from a shape follows the shard, too, where it should not. Exported programs have numbers in place of all but some -1, so
the source is read.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Sequence
from typing import Any

from shardy_py.torch.frontend.places import original_target
from shardy_py.torch.frontend.source_lines import SourceLine, source_line_of

SIZED = frozenset(
    f"aten.{name}.default"
    for name in (
        *("view", "_unsafe_view", "view_copy", "reshape", "_reshape_alias"),
        *("expand", "expand_copy", "broadcast_to"),
    )
)
"""Reshapes and expansions with the sizes of their result."""
_ANY_DIM = tuple(range(-8, 8))
_EXPANSIONS = ("expand", "expand_copy", "broadcast_to")
_OF_NUMBERS = ("float", "int", "min", "max", "pow", "abs", "round", "sqrt", "ceil", "floor", "log", "log2", "exp")


def inferred_dims(node: Any) -> tuple[int, ...]:
    """Return the dimensions of the result of a reshape whose sizes follow from its operand.

    Args:
        node: A node that calls a reshape or an expansion with the sizes of its result.
    """
    sizes = node.args[1] if len(node.args) > 1 else node.kwargs.get("size", ())
    if not isinstance(sizes, (list, tuple)):
        return ()
    original = original_target(node) or str(node.target)
    if original.startswith("aten.flatten."):
        return tuple(range(len(sizes)))
    inferred = tuple(number for number, size in enumerate(sizes) if type(size) is int and size == -1)
    method, line = _method_of(original), source_line_of(node)
    if method in _EXPANSIONS:
        # Operators that a function calls serve all models, and so do ``expand_as`` and the like.
        dims = None if line is None else _dims_in_source(line, method, len(sizes))
        return tuple(range(len(sizes))) if dims is None else tuple(dict.fromkeys((*inferred, *dims)))
    if inferred:
        return inferred
    if method not in ("reshape", "view") or line is None:
        return ()
    dims = _dims_in_source(line, method, len(sizes))
    if dims is None:
        # In a function that is not seen. What repeats heads of keys and values, or changes nothing, takes the sizes
        # from its tensor, as it serves all models.
        return tuple(range(len(sizes))) if _repeats(node) or _changes_nothing(node) else ()
    return dims


def shape_indices(node: Any) -> tuple[int, ...]:
    """Return the indices of shapes that the number in a call is computed from, such as that of ``y / y.shape[-1]``.

    Args:
        node: A node that computes elements from a number, and from those of a tensor if it has one.
    """
    numbers = [item for item in (*node.args, *node.kwargs.values()) if type(item) in (int, float)]
    if not numbers:
        return ()
    line, method = source_line_of(node), _method_of(original_target(node) or str(node.target))
    if line is None or not _has_operator(line, method):
        # In a function that is not seen: a number that is what one computes from a size counts as computed from it.
        operands = [getattr(item, "meta", {}).get("val") for item in (*node.args, *node.kwargs.values())]
        shapes = [tuple(item.shape) for item in operands if item is not None and hasattr(item, "shape")]
        dims = [dim for number in numbers for shape in shapes for dim in _dims_by_size(number, shape)]
        return tuple(dict.fromkeys(dims))
    return _indices_in_source(line, method)


def _has_operator(line: SourceLine, method: str) -> bool:
    """Return whether a line may call an operator itself: it has arithmetic, or a function of that name."""
    for node in line.expressions():
        if isinstance(node, (ast.BinOp, ast.AugAssign)):
            return True
        if isinstance(node, ast.Call) and _base_method(node.func) == method:
            return True
    return False


def _base_method(function: ast.expr) -> str:
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    return str(name).rstrip("_")


def _dims_by_size(number: float, shape: Sequence[Any]) -> tuple[int, ...]:
    """Return the dimensions from whose size a number is computed, to judge by its value.

    >>> _dims_by_size(32**-0.5, (2, 8, 32)), _dims_by_size(0.5, (2, 8, 32)), _dims_by_size(3, (2, 8, 32))
    ((2,), (0,), ())
    """
    sizes = [size if type(size) is int and size > 1 else 0 for size in shape]
    if sizes and all(sizes) and is_of_size(number, math.prod(sizes)):
        return tuple(range(len(sizes)))
    return tuple(dim for dim, size in enumerate(sizes) if size and is_of_size(number, size))


def is_of_size(number: float, size: int) -> bool:
    """Return whether a number is what modules compute from a size: the size, its inverse or root."""
    return any(math.isclose(abs(number), size**power, rel_tol=1e-6) for power in (1, -1, 0.5, -0.5))


def _method_of(operator: str) -> str:
    return operator.removeprefix("aten.").partition(".")[0].rstrip("_")


def _repeats(node: Any) -> bool:
    """Return whether a reshape merges a dimension with one that an expansion adds."""
    copied = node.args[0]
    is_copy = str(getattr(copied, "target", "")) == "aten.clone.default"
    return is_copy and str(getattr(copied.args[0], "target", "")) == "aten.expand.default"


def _changes_nothing(node: Any) -> bool:
    before, after = (getattr(item, "meta", {}).get("val") for item in (node.args[0], node))
    return before is not None and after is not None and tuple(before.shape) == tuple(after.shape)


def _dims_in_source(line: SourceLine | None, method: str, rank: int) -> tuple[int, ...] | None:
    """Return the dimensions whose sizes follow from the tensor, by the only call of a reshape in a line, if it has one.

    >>> from shardy_py.torch.frontend.source_lines import line_of_code
    >>> _dims_in_source(line_of_code("x = self.o(y.transpose(1, 2).reshape(*shape, -1))"), "reshape", 3)
    (2,)
    >>> _dims_in_source(line_of_code("return y.view(y.shape[0], self.heads, y.size(1) // 2)"), "view", 3)
    (0, 2)
    """
    if line is None:
        return None
    calls = [node for node in line.expressions() if isinstance(node, ast.Call)]
    method_calls = [call for call in calls if isinstance(call.func, ast.Attribute) and call.func.attr == method]
    if len(method_calls) != 1:
        return () if method_calls else None
    (call,) = method_calls
    sizes = _written_sizes(call)
    base = _base_name(call.func)
    stars = [number for number, item in enumerate(sizes) if isinstance(item, ast.Starred)]
    dims = []
    for number, item in enumerate(sizes):
        if number in stars or (stars and stars[0] < number < stars[-1]):
            continue
        if ast.unparse(item) == "-1" or (base and _is_of_shape(item, base, line)):
            dims.append(number - len(sizes) + rank if stars and stars[-1] < number else number)
    return tuple(dims)


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


def _is_of_shape(size: ast.expr, base: str, line: SourceLine) -> bool:
    """Return whether a size is computed from the shape of a tensor that a variable holds."""
    if any(_is_shape(node, base) for node in ast.walk(size)):
        return True
    assigned = [(_names_in(target), value) for target, value in line.assignments()]
    names = _names_in(size)
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
    return isinstance(node, ast.Attribute) and node.attr in ("shape", "size") and _base_name(node.value) == base


def _names_in(expression: ast.AST) -> set[str]:
    return {node.id for node in ast.walk(expression) if isinstance(node, ast.Name)}


def _indices_in_source(line: SourceLine, method: str) -> tuple[int, ...]:
    """Return the indices of shapes from which a number in a line is computed.

    >>> from shardy_py.torch.frontend.source_lines import line_of_code
    >>> _indices_in_source(line_of_code("return self.down(y * y.size(-1) ** -0.5)"), "mul")
    (-1,)
    >>> _indices_in_source(line_of_code("return y.view(y.shape[0], -1) * 2"), "mul")
    ()
    >>> -1 in _indices_in_source(line_of_code("return y / y.numel()"), "div")
    True
    """
    variables: dict[str, tuple[int, ...]] = {}
    for target, value in line.assignments():
        _assign(target, value, variables)
    indices: list[int] = []
    for node in line.expressions():
        if isinstance(node, ast.BinOp):
            indices += (*_indices(node.left, variables), *_indices(node.right, variables))
        elif isinstance(node, ast.AugAssign):
            indices += _indices(node.value, variables)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == method:
            arguments = (*node.args, *(keyword.value for keyword in node.keywords))
            indices += (index for item in arguments for index in _indices(item, variables))
    return tuple(dict.fromkeys(indices))


def _assign(target: ast.expr, value: ast.expr, variables: dict[str, tuple[int, ...]]) -> None:
    """Note the variables that hold sizes of a shape, with the indices of these from both ends."""
    if isinstance(target, ast.Name):
        variables[target.id] = _ANY_DIM if _is_whole_shape(value) else _indices(value, variables)
    elif isinstance(target, (ast.Tuple, ast.List)):
        count = len(target.elts)
        for number, item in enumerate(target.elts):
            if isinstance(item, ast.Name):
                variables[item.id] = (number, number - count) if _is_whole_shape(value) else ()


def _is_whole_shape(value: ast.expr) -> bool:
    is_call = isinstance(value, ast.Call) and not value.args and not value.keywords
    inner = value.func if is_call and isinstance(value, ast.Call) else value
    return isinstance(inner, ast.Attribute) and inner.attr == ("size" if is_call else "shape")


def _is_part_of_shape(value: ast.expr, variables: dict[str, tuple[int, ...]]) -> bool:
    inner = value.value if isinstance(value, ast.Subscript) else value
    return _is_whole_shape(inner) or (isinstance(inner, ast.Name) and bool(variables.get(inner.id)))


def _indices(expression: ast.expr, variables: dict[str, tuple[int, ...]]) -> tuple[int, ...]:
    """Return the indices of shapes that a number is computed from; none for what is not a number."""
    match expression:
        case ast.Name(id=name):
            return variables.get(name, ())
        case ast.Subscript(value=ast.Attribute(attr="shape"), slice=index):
            return _constant(index)
        case ast.Subscript(value=ast.Name(id=name)):
            return variables.get(name, ())
        case ast.Call(func=ast.Attribute(attr="size"), args=[index]):
            return _constant(index)
        case ast.Call(func=ast.Attribute(attr="size"), keywords=[ast.keyword(arg="dim", value=index)]):
            return _constant(index)
        case ast.Call(func=ast.Attribute(attr="numel" | "nelement")):
            return _ANY_DIM
        case ast.Call(func=ast.Attribute(attr="prod") | ast.Name(id="prod"), args=[shape]):
            return _ANY_DIM if _is_part_of_shape(shape, variables) else ()
        case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name), args=arguments) if name in _OF_NUMBERS:
            return tuple(index for item in arguments for index in _indices(item, variables))
        case ast.BinOp(left=left, right=right):
            return (*_indices(left, variables), *_indices(right, variables))
        case ast.UnaryOp(operand=operand):
            return _indices(operand, variables)
    return ()


def _constant(index: ast.expr) -> tuple[int, ...]:
    try:
        value = ast.literal_eval(index)
    except ValueError:
        return _ANY_DIM
    return (value,) if type(value) is int else _ANY_DIM
