"""The process that reads ``.pt2`` files of unknown origin for `shardy_py.torch.frontend`.

PyTorch unpickles the example inputs and the constants of a file, evaluates its symbolic sizes as Python, and writes
Python for its graph, with the names in it. So a file is code. Here pickles may hold tensors only, sizes are numbers and
symbols, and names are names.
"""

from __future__ import annotations

import ast
import os
import re
from importlib import import_module
from typing import Any, NoReturn

from shardy_py.errors import Diagnostic, ParseError, UnsupportedError
from shardy_py.frontends.isolation import answer_reader

_SIZE_NODES = (ast.Expression, ast.Call, ast.Name, ast.Load, ast.Constant, ast.keyword, ast.UnaryOp, ast.USub)
"""Parts of the text of a size: constructors of sympy and their arguments, ``Symbol('s0', integer=True)``."""
_CONSTRUCTOR = re.compile(r"(?!.*__)[A-Z]\w*", re.ASCII)
_NAME = re.compile(r"[\w.:]*", re.ASCII)
_FORCED, _FORBIDDEN = "TORCH_FORCE_WEIGHTS_ONLY_LOAD", "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"


class _Refused(Exception):
    """Something in a file that PyTorch would run."""


def main() -> None:
    """Read the file that the parent sends."""
    answer_reader(_prepare, _read)


def _prepare(data: bytes) -> None:
    """Import PyTorch, and take the ways from it in which a file can give code."""
    from shardy_py.torch.frontend.load import import_torch

    torch = import_torch("-")
    for name in ("torch.export.pt2_archive._package", "torch._export.serde.serialize", "torch._decomp", "sympy"):
        import_module(name)
    for name in ("importer", "load", "packing"):
        import_module(f"shardy_py.torch.frontend.{name}")
    os.environ.pop(_FORBIDDEN, None)
    os.environ[_FORCED] = "1"
    torch._C._pickle_load_obj = _refuse_object
    _check_sizes(import_module("sympy"))
    _check_names(torch.fx.Graph)


def _read(data: bytes, name: str) -> bytes:
    """Return the op graph of an exported program as `shardy_py.torch.frontend.packing` writes it."""
    from shardy_py.torch.frontend import TORCH
    from shardy_py.torch.frontend.importer import import_program
    from shardy_py.torch.frontend.load import load_bytes
    from shardy_py.torch.frontend.packing import pack

    try:
        program = load_bytes(data, name)
    except ParseError as error:
        raise _explain(error) from None
    return pack(import_program(program, frontend=TORCH)).data


def _explain(error: ParseError) -> ParseError | UnsupportedError:
    """Return an error that says what of a file is refused because it would run, and how to read it all the same."""
    cause: BaseException | None = error.__cause__
    while cause is not None:
        text = str(cause)
        if isinstance(cause, (_Refused, PermissionError)) or "weights_only" in text or "Weights only" in text:
            reason = text.splitlines()[0] if isinstance(cause, (_Refused, PermissionError)) else "a pickle of objects"
            message = f"the file holds more than tensors and a graph, and reading it would run that: {reason}"
            hint = "leave out --untrusted if you know who wrote the file"
            return UnsupportedError(Diagnostic("unsafe-file", message, error.diagnostics[0].location, hint=hint))
        cause = cause.__cause__ or cause.__context__
    return error


def _refuse_object(data: bytes) -> NoReturn:
    raise _Refused("a constant is an object of a class in C++")


def _check_sizes(sympy: Any) -> None:
    """Let PyTorch take only numbers and symbols for the sizes in a file, which it evaluates as Python."""
    evaluate = sympy.sympify

    def sympify(value: Any, *arguments: Any, **options: Any) -> Any:
        if isinstance(value, str) and not _is_size(value):
            raise _Refused(f"a size is the expression {value[:100]}")
        return evaluate(value, *arguments, **options)

    sympy.sympify = sympify


def _is_size(text: str) -> bool:
    """Return whether a text is nothing but constructors of sympy and numbers."""
    try:
        nodes = list(ast.walk(ast.parse(text.strip(), mode="eval")))
    except (SyntaxError, ValueError):
        return False
    names = [node.id for node in nodes if isinstance(node, ast.Name)]
    texts = [node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    return (
        all(isinstance(node, _SIZE_NODES) for node in nodes)
        and all(_CONSTRUCTOR.fullmatch(name) for name in names)
        and all(item.isidentifier() for item in texts)
    )


def _check_names(graph: Any) -> None:
    """Let PyTorch take names only for the names in a graph, of which it writes Python."""
    create = graph.create_node

    def create_node(
        self: Any, op: str, target: Any, args: Any = None, kwargs: Any = None, *rest: Any, **more: Any
    ) -> Any:
        names = [target, *(kwargs or ())]
        for name in names:
            if isinstance(name, str) and not _NAME.fullmatch(name):
                raise _Refused(f"the name {name[:100]!r} is Python")
        return create(self, op, target, args, kwargs, *rest, **more)

    graph.create_node = create_node
