"""Numbers in MLIR's notation, and the neutral values of combiners, by element type."""

from __future__ import annotations

import re

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
