"""Numbers and lists of integers in MLIR's notation, and the neutral values of combiners, by element type."""

from __future__ import annotations

import re
from collections.abc import Sequence
from struct import unpack

from shardy_py.ir.graph.attributes import RawAttribute
from shardy_py.sharding.combiner import Combiner

_INTEGER = re.compile(r"(s|u)?i(\d+)")


_FLOAT = re.compile(r"b?f\d+\w*|tf32")


_COMPLEX = r"complex<(.+)>"


_BOOLEAN = "i1"


_INFINITIES = {"f16": 0x7C00, "bf16": 0x7F80, "f32": 0x7F800000, "f64": 0x7FF0000000000000, "f8E5M2": 0x7C}
"""The bits of infinity of the types that have one."""


_LARGEST = {"f8E4M3FN": "448.0", "f8E4M3FNUZ": "240.0", "f8E5M2FNUZ": "57344.0", "f8E4M3B11FNUZ": "30.0"}
"""The largest numbers of the types without infinity."""


_NANS = {"f16": 0x7E00, "bf16": 0x7FC0, "f32": 0x7FC00000, "f64": 0x7FF8000000000000}


def constant_literal(number: Combiner | float, element_type: str) -> str | None:
    """Return a number, or the neutral value of a combiner; None where the element type has no such number."""
    return neutral_literal(number, element_type) if isinstance(number, Combiner) else literal(number, element_type)


def literal(number: float, element_type: str) -> str | None:
    """Return a number of an element type; None where the type has no such number.

    >>> literal(0, "f32"), literal(1, "i1"), literal(77, "i4"), literal(float("nan"), "f32")
    ('0.000000e+00', 'true', None, '0x7FC00000')
    """
    inner = re.fullmatch(_COMPLEX, element_type)
    if inner is not None:
        real, zero = literal(number, inner[1]), literal(0, inner[1])
        return f"({real}, {zero})" if real is not None else None
    if element_type == _BOOLEAN:
        return "true" if number else "false"
    if number != number or _FLOAT.fullmatch(element_type):
        return _float(number, element_type)
    limits = _limits(element_type)
    return str(int(number)) if limits is not None and limits[0] <= number <= limits[1] else None


def neutral_literal(combiner: Combiner, element_type: str) -> str | None:
    """Return the number that changes nothing when it is combined; None where the element type has none.

    >>> neutral_literal(Combiner.MAX, "f32"), neutral_literal(Combiner.MIN, "ui8"), neutral_literal(Combiner.AND, "i32")
    ('0xFF800000', '255', '-1')
    """
    if combiner in (Combiner.ADD, Combiner.MUL):
        return literal(combiner is Combiner.MUL, element_type)
    is_low = combiner in (Combiner.MAX, Combiner.OR)
    if element_type == _BOOLEAN:
        return "false" if is_low else "true"
    limits = _limits(element_type)
    if combiner in (Combiner.AND, Combiner.OR):
        return None if limits is None else "0" if is_low else str(limits[1] if limits[0] == 0 else -1)
    if limits is not None:
        return str(limits[0] if is_low else limits[1])
    if element_type in _LARGEST:
        return ("-" if is_low else "") + _LARGEST[element_type]
    if element_type not in _INFINITIES:
        return None
    bits = _INFINITIES[element_type]
    return f"0x{bits | _sign(bits) if is_low else bits:X}"


def _float(number: float, element_type: str) -> str | None:
    if number != number:
        return f"0x{_NANS[element_type]:X}" if element_type in _NANS else None
    return f"{number:.6e}"


def _sign(bits: int) -> int:
    """Return the sign bit of the float type whose infinity has these bits."""
    return 1 << bits.bit_length()


def _limits(element_type: str) -> tuple[int, int] | None:
    """Return the smallest and the largest number of an integer type; signless ones count as signed."""
    match = _INTEGER.fullmatch(element_type)
    if match is None:
        return None
    width = int(match[2])
    return (0, 2**width - 1) if match[1] == "u" else (-(2 ** (width - 1)), 2 ** (width - 1) - 1)


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
