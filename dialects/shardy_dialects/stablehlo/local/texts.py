"""Attributes of integers in MLIR's notation."""

from __future__ import annotations

from collections.abc import Sequence

from shardy_py.ir.attributes import RawAttribute


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


def array(items: Sequence[int]) -> RawAttribute:
    """Return an array of 64-bit integers, which may be empty.

    >>> str(array([])), str(array([1, 2]))
    ('array<i64>', 'array<i64: 1, 2>')
    """
    return RawAttribute(f"array<i64: {', '.join(map(str, items))}>" if items else "array<i64>")
