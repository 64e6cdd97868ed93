"""Attributes of integers in MLIR's notation."""

from __future__ import annotations

from collections.abc import Sequence
from struct import unpack

from shardy_py.ir.graph.attributes import RawAttribute


def dense(rows: Sequence[int] | Sequence[Sequence[int]]) -> RawAttribute:
    """Return a list or a table of 64-bit integers as elements of a tensor.

    >>> str(dense([(0, 1), (2, 3)]))
    'dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>'
    """
    shape = [len(rows)]
    if rows and not isinstance(rows[0], int):
        shape.append(len(rows[0]))
    sizes = "x".join(map(str, shape))
    text = str([row if isinstance(row, int) else list(row) for row in rows])
    return RawAttribute(f"dense<{text}> : tensor<{sizes}xi64>")


def read_dense(text: str) -> tuple[tuple[int, ...], ...]:
    """Return the rows of a table of 64-bit integers, which may be one number for all; MLIR writes long ones as bytes.

    >>> read_dense("dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>"), read_dense("dense<0> : tensor<1x1xi64>")
    (((0, 1), (2, 3)), ((0,),))
    >>> read_dense('dense<"0x0100000000000000FFFFFFFFFFFFFFFF"> : tensor<1x2xi64>')
    ((1, -1),)
    """
    value, _, type_ = text.removeprefix("dense<").partition("> : ")
    if value.startswith('"0x'):
        rows, columns = (int(size) for size in type_.removeprefix("tensor<").split("x")[:2])
        numbers = unpack(f"<{rows * columns}q", bytes.fromhex(value.strip('"')[2:]))
        return tuple(numbers[row * columns : (row + 1) * columns] for row in range(rows))
    if not value.startswith("["):
        rows, columns = (int(size) for size in type_.removeprefix("tensor<").split("x")[:2])
        return ((int(value),) * columns,) * rows if value else ()
    import json

    return tuple(tuple(row) for row in json.loads(value))


def array(items: Sequence[int]) -> RawAttribute:
    """Return an array of 64-bit integers, which may be empty.

    >>> str(array([])), str(array([1, 2]))
    ('array<i64>', 'array<i64: 1, 2>')
    """
    return RawAttribute(f"array<i64: {', '.join(map(str, items))}>" if items else "array<i64>")
