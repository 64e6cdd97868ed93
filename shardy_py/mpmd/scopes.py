"""Named computations from the scopes of ops.

A scope is the name of a node, such as ``/encoder/layer.0/MatMul`` in ONNX, or the path of a submodule of PyTorch, such
as ``encoder.layer.0``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import groupby

from shardy_py.ir.graph.graphs import main_function
from shardy_py.ir.graph.program import Block, Op, Program, Region, Value
from shardy_py.mpmd.dialect.calls import block_of
from shardy_py.mpmd.dialect.op_names import NAMED_COMPUTATION, ORIGIN, RETURN
from shardy_py.mpmd.dialect.origins import UserOrigin


def name_scopes(program: Program, names: Iterable[str], scope: Callable[[Op], str]) -> None:
    """Make named computations of the ops of the main function that are in a scope.

    A scope is a name, or a path of names as ``encoder/layer.0`` or ``encoder.layer.0``; the longest one that fits
    counts. Neighbouring ops of one scope are one computation.

    Args:
        program: The program.
        names: The scopes.
        scope: Returns the path of names that an op is in.
    """
    main = main_function(program)
    longest_first = sorted(names, key=lambda name: (-len(name), name))
    if main is None:
        return
    runs = groupby(block_of(main).ops, lambda op: scope_of(scope(op), longest_first))
    for name, ops in [(name, list(ops)) for name, ops in runs]:
        if name is not None:
            _wrap(ops, name)


def scope_of(location: str, names: Sequence[str]) -> str | None:
    """Return the first name in whose scope a location is.

    >>> scope_of("/encoder/layer.1/MatMul", ["encoder/layer.1", "encoder"])
    'encoder/layer.1'
    >>> scope_of("/encoder/layer.10/MatMul", ["encoder/layer.1", "encoder"])
    'encoder'
    >>> scope_of("layers.1.attention", ["layers.1", "layers.10"])
    'layers.1'
    """
    path = location.strip("/")
    return next((name for name in names if _is_inside(path, name.strip("/"))), None)


def _is_inside(path: str, name: str) -> bool:
    return path.startswith(name) and path[len(name) : len(name) + 1] in ("", "/", ".")


def _wrap(ops: Sequence[Op], name: str) -> None:
    """Put some neighbouring ops into a named computation."""
    program, parent = ops[0].program, ops[0].parent
    assert parent is not None
    inner_ops = [op for outer in ops for op in outer.walk()]
    ids = {op.id for op in inner_ops}
    operands: dict[int, Value] = {
        value.id: value for op in inner_ops for value in op.operands if _owner_id(value) not in ids
    }
    results = [value for op in ops for value in op.results if any(user.id not in ids for user, _ in value.uses)]
    block = Block(program, [value.type for value in operands.values()])
    types = [value.type for value in results]
    attributes = {ORIGIN: UserOrigin(name).attribute}
    computation = Op(program, NAMED_COMPUTATION, list(operands.values()), types, attributes, [Region([block])])
    parent.insert_before(ops[0], computation)
    for op in ops:
        parent.remove(op)
        block.append(op)
    for value, argument in zip(operands.values(), block.arguments, strict=True):
        for user, number in list(value.uses):
            if user.id in ids:
                user.set_operand(number, argument)
    for value, result in zip(results, computation.results, strict=True):
        for user, number in list(value.uses):
            if user.id not in ids:
                user.set_operand(number, result)
    block.append(Op(program, RETURN, results))


def _owner_id(value: Value) -> int:
    """Return the id of the op that makes a value, or that has the region whose argument it is."""
    return value.owning_op.id if value.defining_op is None else value.defining_op.id
