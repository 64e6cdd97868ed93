"""Element types: XLA's names, MLIR's names, and the bits an element takes."""

from __future__ import annotations

import re

from shardy_py.errors import Diagnostic, VerificationError
from shardy_py.support.arguments import parse_integer, shown

_BITS = {
    "pred": 1,
    **{f"{sign}{bits}": bits for sign in "su" for bits in (1, 2, 4, 8, 16, 32, 64)},
    "f4e2m1fn": 4,
    "f8e3m4": 8,
    "f8e4m3": 8,
    "f8e4m3fn": 8,
    "f8e4m3b11fnuz": 8,
    "f8e4m3fnuz": 8,
    "f8e5m2": 8,
    "f8e5m2fnuz": 8,
    "f8e8m0fnu": 8,
    "f16": 16,
    "bf16": 16,
    "f32": 32,
    "f64": 64,
    "c64": 64,
    "c128": 128,
}
ELEMENT_TYPES = tuple(_BITS)
"""The element types of arrays, by XLA's names."""

ARRAY_ELEMENT_TYPES = {
    "bool": "i1",
    **{f"int{bits}": f"i{bits}" for bits in (4, 8, 16, 32, 64)},
    **{f"uint{bits}": f"ui{bits}" for bits in (4, 8, 16, 32, 64)},
    **{f"float{bits}": f"f{bits}" for bits in (16, 32, 64)},
    **{
        f"float8_{format}": f"f8{format.upper()}"
        for format in ("e3m4", "e4m3", "e4m3fn", "e4m3b11fnuz", "e4m3fnuz", "e5m2", "e5m2fnuz", "e8m0fnu")
    },
    "bfloat16": "bf16",
    "complex64": "complex<f32>",
    "complex128": "complex<f64>",
}
"""Names of the dtypes of arrays to MLIR's names."""

_NUMBER = re.compile(r"^(?:[su]?i|f|bf|tf)(\d+)")
_INTEGER = re.compile(r"^(s|u)?i(\d+)$")
_QUANTIZED = re.compile(r"^!quant\.uniform<([^:<]+)")
_COMPLEX = re.compile(r"^complex<(.*)>$")


def bit_width(element_type: str) -> int:
    """Return the bits of information in one element of an XLA element type.

    >>> bit_width("pred"), bit_width("s4"), bit_width("c64")
    (1, 4, 64)

    Raises:
        VerificationError: there is no such element type.
    """
    return _bits(element_type)


def storage_bits(element_type: str) -> int:
    """Return the bits one element takes where the layout does not say: whole bytes.

    >>> storage_bits("pred"), storage_bits("s4"), storage_bits("bf16")
    (8, 8, 16)

    Raises:
        VerificationError: there is no such element type.
    """
    return -(-_bits(element_type) // 8) * 8


def _bits(element_type: str) -> int:
    try:
        return _BITS[element_type]
    except (KeyError, TypeError):
        message = f"there is no element type {shown(element_type)}"
        raise VerificationError(Diagnostic("unknown-element-type", message)) from None


def packed_bits(element_type: str) -> int:
    """Return the bits one element takes where it is packed: a boolean a byte, all others their width.

    >>> packed_bits("pred"), packed_bits("s4"), packed_bits("bf16")
    (8, 4, 16)

    Raises:
        VerificationError: there is no such element type.
    """
    return 8 if element_type == "pred" else _BITS[element_type]


def mlir_element_bits(element_type: str) -> int | None:
    """Return the packed bits of an element type in MLIR's notation, or None where the type does not say.

    >>> [mlir_element_bits(name) for name in ("f32", "bf16", "i1", "ui4", "f8E4M3FN", "complex<f64>", "!toy.t")]
    [32, 16, 8, 4, 8, 128, None]
    """
    name = xla_element_type(element_type)
    if name is not None:
        return packed_bits(name)
    if match := _COMPLEX.match(element_type):
        half = mlir_element_bits(match[1])
        return None if half is None else 2 * half
    if match := _QUANTIZED.match(element_type):
        return mlir_element_bits(match[1])
    match = _NUMBER.match(element_type)
    return parse_integer(match[1]) if match else None


def xla_element_type(element_type: str) -> str | None:
    """Return XLA's name of an element type in MLIR's notation, or None where XLA has none.

    >>> [xla_element_type(name) for name in ("i1", "i8", "ui4", "f8E4M3FN", "complex<f32>", "tf32", "i7")]
    ['pred', 's8', 'u4', 'f8e4m3fn', 'c64', 'f32', None]
    """
    if element_type in ("i1", "index", "tf32"):
        return {"i1": "pred", "index": "s64", "tf32": "f32"}[element_type]
    if match := _COMPLEX.match(element_type):
        return {"f32": "c64", "f64": "c128"}.get(match[1])
    if match := _QUANTIZED.match(element_type):
        return xla_element_type(match[1])
    if match := _INTEGER.match(element_type):
        name = f"{'u' if match[1] == 'u' else 's'}{match[2]}"
    else:
        name = element_type.lower() if element_type[:1] in "fb" else ""
    return name if name in _BITS else None
