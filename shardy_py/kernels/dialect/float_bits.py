"""Floats by their bits: rounding to a type, and constants whose text has such bits."""

from __future__ import annotations

import math
import re
import struct

_FORMATS = {"f16": "<e", "f32": "<f", "f64": "<d"}
_SIZES = {"bf16": 2, "f16": 2, "f32": 4, "f64": 8}
_HEX = re.compile(r"0[xX][0-9a-fA-F]+")
_NUMBER = re.compile(rf"{_HEX.pattern}|[-+]?[0-9][0-9.eE+-]*")
_DENSE = re.compile(r'dense<([^<>"]*0[xX][^<>"]*)>(\s*:\s*(?:tensor|vector)<(?:\d+x)*(bf16|f16|f32|f64)\b)')


def float_bits(value: float, dtype: str) -> int:
    """Return the bits of a float, rounded to the nearest of its type.

    >>> [hex(float_bits(1.01171875, dtype)) for dtype in ("bf16", "f16", "f32")]
    ['0x3f82', '0x3c0c', '0x3f818000']
    """
    if dtype == "bf16":
        bits = float_bits(value, "f32")
        if math.isnan(value):
            return bits >> 16 | 0x40
        return bits + 0x7FFF + (bits >> 16 & 1) >> 16
    format_ = _FORMATS[dtype]
    try:
        packed = struct.pack(format_, value)
    except OverflowError:
        packed = struct.pack(format_, math.copysign(math.inf, value))
    return int.from_bytes(packed, "little")


def special_floats_as_bytes(text: str) -> str:
    """Return a text with all constants that name floats by their bits as strings of bytes.

    MLIR writes infinities and NaNs by their bits; xDSL reads these as integers.

    >>> special_floats_as_bytes("dense<[0xFF80, 1.0]> : tensor<2xbf16>")
    'dense<"0x80FF803F"> : tensor<2xbf16>'
    """
    return _DENSE.sub(_as_bytes, text)


def _as_bytes(match: re.Match[str]) -> str:
    dtype = match[3]
    words = [
        int(number, 16) if _HEX.fullmatch(number) else float_bits(float(number), dtype)
        for number in _NUMBER.findall(match[1])
    ]
    data = b"".join(word.to_bytes(_SIZES[dtype], "little") for word in words)
    return f'dense<"0x{data.hex().upper()}">{match[2]}'
