"""Expressions index a dimension by a sum, by a digit, or by neither."""

from __future__ import annotations

import pytest

from shardy_py.indexing import AffineMap
from shardy_py.sharding.derivation.loops import DigitIndex, LinearIndex, OpaqueIndex, dim_index


def index_of(text):
    """Return the index of one expression over two loops and a symbol."""
    (result,) = AffineMap.parse(f"(d0, d1)[s0] -> ({text})").results
    return dim_index(result)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("d1", LinearIndex(((1, 1),))),
        ("2 * d0 - 1", LinearIndex(((0, 2),), -1)),
        ("(d0 + d1) * 2 - d1", LinearIndex(((0, 2), (1, 1)))),
        ("0", LinearIndex(())),
        ("d0 floordiv 1", LinearIndex(((0, 1),))),
        ("d0 mod 1", LinearIndex(())),
        ("d0 + s0", OpaqueIndex((0,))),
        ("d0 ceildiv 3", OpaqueIndex((0,))),
        ("d0 * d1", OpaqueIndex((0, 1))),
    ],
)
def test_linear_indices(text, expected) -> None:
    """A sum of loops times numbers is linear; symbols, products of loops and rounding up are not."""
    assert index_of(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("d0 floordiv 4", DigitIndex(0, 4)),
        ("d1 mod 2", DigitIndex(1, 1, 2)),
        ("(d0 floordiv 4) mod 8", DigitIndex(0, 4, 8)),
        ("(d0 mod 32) floordiv 4", DigitIndex(0, 4, 8)),
        ("(d0 floordiv 4) floordiv 2", DigitIndex(0, 8)),
        ("(d0 mod 8) mod 4", DigitIndex(0, 1, 4)),
        ("(2 * d0) floordiv 4", DigitIndex(0, 2)),
        ("(d0 mod 4) mod 8", OpaqueIndex((0,))),
        ("(d0 mod 32) floordiv 5", OpaqueIndex((0,))),
        ("(d0 + 1) mod 4", OpaqueIndex((0,))),
        ("d0 mod d1", OpaqueIndex((0, 1))),
        ("d0 mod 0", OpaqueIndex((0,))),
        ("s0 mod 4", OpaqueIndex(())),
    ],
)
def test_digits(text, expected) -> None:
    """Quotients and remainders of one loop are digits of it, also one inside the other; nothing else is."""
    assert index_of(text) == expected
