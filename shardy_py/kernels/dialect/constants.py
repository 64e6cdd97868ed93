"""Constants by their bits, and accesses to vectors of neighbouring elements."""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Sequence
from math import prod
from typing import Any

from xdsl.dialects import builtin, vector
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.ir.affine import AffineMap

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


VectorOf = builtin.VectorType[Attribute]

_INSIDE = builtin.ArrayAttr([builtin.BoolAttr.from_bool(True)])


def element_type(value: SSAValue) -> Attribute:
    """Return the type of the elements of a tensor or vector."""
    assert isinstance(value.type, builtin.TensorType | builtin.VectorType)
    return value.type.element_type


def zero(type_: Any) -> builtin.FloatAttr[Any] | builtin.IntegerAttr[Any]:
    """Return a zero."""
    if isinstance(type_, builtin.IntegerType | builtin.IndexType):
        return builtin.IntegerAttr(0, type_)
    return builtin.FloatAttr(0.0, type_)


def zeros(type_: VectorOf) -> builtin.DenseIntOrFPElementsAttr:
    """Return a vector of zeros."""
    element: Any = type_.element_type
    number: Any = 0 if isinstance(element, builtin.IntegerType) else 0.0
    vector_type: Any = type_
    return builtin.DenseIntOrFPElementsAttr.from_list(vector_type, [number] * prod(type_.get_shape()))


def minor_dimension(rank: int) -> builtin.AffineMapAttr:
    """Return the map of an access along the last dimension of a tensor, as ``permutation_map`` takes it."""
    return builtin.AffineMapAttr(AffineMap(rank, 0, AffineMap.identity(rank).results[-1:]))


def read_vector(source: SSAValue, place: Sequence[SSAValue], type_: VectorOf, padding: SSAValue) -> Operation:
    """Return an op that reads neighbouring elements from a place on."""
    return vector.TransferReadOp(source, list(place), padding, type_, _INSIDE, minor_dimension(len(place)))


def write_vector(value: SSAValue, target: SSAValue, place: Sequence[SSAValue]) -> Operation:
    """Return an op that writes neighbouring elements from a place on."""
    type_: Any = target.type
    map_ = minor_dimension(len(place))
    return vector.TransferWriteOp(value, target, list(place), _INSIDE, permutation_map=map_, result_type=type_)
