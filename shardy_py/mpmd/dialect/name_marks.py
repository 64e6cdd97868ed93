"""Names of functions that say that a call is a named computation, a named tensor or a microbatch.

Frontends without ops for these write calls of functions with such names. A name that is taken gets a number behind it,
so the last character before that is always a bar.
"""

from __future__ import annotations

import re

from shardy_py.ir.graph.graphs import callee_of
from shardy_py.ir.graph.op_names import CALL
from shardy_py.ir.graph.program import Op
from shardy_py.mpmd.dialect.fragments import origins_of
from shardy_py.mpmd.dialect.op_names import NAMED_COMPUTATION, NAMED_TENSOR
from shardy_py.mpmd.dialect.origins import UserOrigin

_MARK = re.compile(r"mpmd\|(computation|tensor|call|broadcast|reduce)\|(.*)\|(\d+)\|(?:_\d+)?")


def computation_mark(name: str, transpose_count: int) -> str:
    """Return the name of a function that is a named computation.

    >>> computation_mark("stage1", 0)
    'mpmd|computation|stage1|0|'
    """
    return f"mpmd|computation|{name}|{transpose_count}|"


def tensor_mark(name: str) -> str:
    """Return the name of a function that is a named tensor."""
    return f"mpmd|tensor|{name}|0|"


def broadcast_mark() -> str:
    """Return the name of a function that hands its argument to all meshes that use it."""
    return "mpmd|broadcast||0|"


def reduce_mark() -> str:
    """Return the name of a function that ends a reduction over meshes."""
    return "mpmd|reduce||0|"


def call_mark(counter: int) -> str:
    """Return the name of a function that is a microbatch."""
    return f"mpmd|call||{counter}|"


def marked_computation(name: str) -> UserOrigin | None:
    """Return the origin of the named computation that a function is, or None."""
    match = _MARK.fullmatch(name)
    return UserOrigin(match[2], int(match[3])) if match is not None and match[1] == "computation" else None


def marked_tensor(name: str) -> str | None:
    """Return the name of the named tensor that a function is, or None."""
    match = _MARK.fullmatch(name)
    return match[2] if match is not None and match[1] == "tensor" else None


def marked_exchange(name: str) -> str | None:
    """Return ``broadcast`` or ``reduce`` for a function that is one, or None."""
    match = _MARK.fullmatch(name)
    return match[1] if match is not None and match[1] in ("broadcast", "reduce") else None


def marked_call(name: str) -> int | None:
    """Return the number of the microbatch that a function is, or None."""
    match = _MARK.fullmatch(name)
    return int(match[3]) if match is not None and match[1] == "call" else None


def names_of(op: Op) -> tuple[str, ...]:
    """Return the names that an op may have a mesh by: of a computation, of a tensor, or of a function that it calls."""
    if op.name == NAMED_COMPUTATION:
        return tuple(origin.name for origin in origins_of(op))
    if op.name == NAMED_TENSOR:
        return (str(op.attributes["name"]),)
    callee = callee_of(op) if op.name == CALL else None
    if callee is None:
        return ()
    origin, tensor = marked_computation(callee), marked_tensor(callee)
    return (callee if origin is None else origin.name,) if tensor is None else (tensor,)
