"""Representation of values of kernels: an array over threads, or one value where all threads agree.

Elements of ``bf16`` are held as ``f32`` whose lower half is zero; every operation rounds them by integers, so that no
result depends on the processor. Integers have a sign, as the ops that read them without one say so by name.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import ml_dtypes
import numpy as np
from xdsl.dialects import builtin
from xdsl.ir import Attribute

from shardy_py.errors import Diagnostic, UnsupportedError
from shardy_py.kernels.dialect.tile_ops import IndexedVectorType

Array = Any
"""An array of numpy, or a scalar of numpy."""

_FLOATS: dict[type[Attribute], tuple[Any, Any]] = {
    builtin.BFloat16Type: (np.float32, np.uint16),
    builtin.Float16Type: (np.float16, np.uint16),
    builtin.Float32Type: (np.float32, np.uint32),
    builtin.Float64Type: (np.float64, np.uint64),
    builtin.Float8E3M4Type: (ml_dtypes.float8_e3m4, np.uint8),
    builtin.Float8E4M3Type: (ml_dtypes.float8_e4m3, np.uint8),
    builtin.Float8E4M3B11FNUZType: (ml_dtypes.float8_e4m3b11fnuz, np.uint8),
    builtin.Float8E4M3FNType: (ml_dtypes.float8_e4m3fn, np.uint8),
    builtin.Float8E4M3FNUZType: (ml_dtypes.float8_e4m3fnuz, np.uint8),
    builtin.Float8E5M2Type: (ml_dtypes.float8_e5m2, np.uint8),
    builtin.Float8E5M2FNUZType: (ml_dtypes.float8_e5m2fnuz, np.uint8),
    builtin.Float8E8M0FNUType: (ml_dtypes.float8_e8m0fnu, np.uint8),
    builtin.Float4E2M1FNType: (ml_dtypes.float4_e2m1fn, np.uint8),
}
# Integers of 4 and 2 bits wrap as they are; their arrays hold one in the lower bits of a byte.
_INTEGERS = {1: np.bool_, 2: ml_dtypes.int2, 4: ml_dtypes.int4, 8: np.int8, 16: np.int16, 32: np.int32, 64: np.int64}
_WORDS = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}
# No integer of numpy has the bits of two doubles.
_WIDE_WORD = np.dtype([("real", np.uint64), ("imaginary", np.uint64)])
_COMPLEX: dict[type[Attribute], Any] = {builtin.Float32Type: np.complex64, builtin.Float64Type: np.complex128}


def element_type(type_: Attribute) -> Attribute:
    """Return the type of a scalar, or of the elements of a vector or tensor."""
    return type_.element_type if isinstance(type_, builtin.VectorType | builtin.TensorType) else type_


def rank_of(type_: Attribute) -> int:
    """Return the number of dimensions that one thread's value has."""
    if isinstance(type_, IndexedVectorType):
        return 1
    return len(type_.get_shape()) if isinstance(type_, builtin.VectorType) else 0


def array_dtype(type_: Attribute) -> Any:
    """Return the dtype of the arrays that hold values of a type.

    Raises:
        UnsupportedError: no array holds them.
    """
    element = element_type(type_)
    if isinstance(element, builtin.IndexType):
        return np.int64
    if type(element) in _FLOATS:
        return _FLOATS[type(element)][0]
    if isinstance(element, builtin.IntegerType) and element.width.data in _INTEGERS:
        return _INTEGERS[element.width.data]
    if isinstance(element, builtin.ComplexType) and type(element.element_type) in _COMPLEX:
        return _COMPLEX[type(element.element_type)]
    message = f"no kernel with elements of type {element} can be run in the interpreter"
    raise UnsupportedError(Diagnostic("run-element-type", message, hint='run the kernel with on="host"'))


def word_dtype(type_: Attribute) -> Any:
    """Return the dtype of an element in memory, as bits."""
    element = element_type(type_)
    if type(element) in _FLOATS:
        return _FLOATS[type(element)][1]
    size = np.dtype(array_dtype(element)).itemsize
    return _WIDE_WORD if size == _WIDE_WORD.itemsize else _WORDS[size]


def is_bfloat16(type_: Attribute) -> bool:
    """Return whether elements are of type ``bf16``."""
    return isinstance(element_type(type_), builtin.BFloat16Type)


def is_float(type_: Attribute) -> bool:
    """Return whether elements are floating-point numbers."""
    return type(element_type(type_)) in _FLOATS


def round_to_bfloat16(x: Array) -> Array:
    """Round ``f32`` to the nearest ``bf16``, halves to even, in integers; NaNs become quiet and keep their upper bits.

    >>> [float(round_to_bfloat16(np.float32(x))) for x in (1.00390625, 1.01171875, 3.4e38)]
    [1.0, 1.015625, inf]
    """
    bits = x.view(np.uint32)
    last = (bits >> np.uint32(16)) & np.uint32(1)
    rounded = (bits + np.uint32(0x7FFF) + last) & np.uint32(0xFFFF0000)
    is_nan = np.isnan(x)
    if is_nan.any():
        rounded = np.where(is_nan, (bits | np.uint32(0x00400000)) & np.uint32(0xFFFF0000), rounded)
    return rounded.view(np.float32)


def rounded(x: Array, type_: Attribute) -> Array:
    """Return floats as the arrays of a type hold them: those of 16 bits are rounded from ``f32``."""
    if is_bfloat16(type_):
        return round_to_bfloat16(x.astype(np.float32))
    dtype = array_dtype(type_)
    return x.astype(np.float32).astype(dtype) if dtype is np.float16 else x.astype(dtype)


def to_words(x: Array, type_: Attribute) -> Array:
    """Return values as bits in memory."""
    if is_bfloat16(type_):
        return (x.view(np.uint32) >> np.uint32(16)).astype(np.uint16)
    return x.view(word_dtype(type_))


def from_words(words: Array, type_: Attribute) -> Array:
    """Return values from their bits in memory."""
    if is_bfloat16(type_):
        return (words.astype(np.uint32) << np.uint32(16)).view(np.float32)
    return words.view(array_dtype(type_))


def chosen(condition: Array, then: Array, otherwise: Array, rank: int = 0) -> Array:
    """Return one of two values by a condition per thread; vectors are taken whole."""
    if np.ndim(condition) == 0:
        return then if condition else otherwise
    return np.where(np.reshape(condition, np.shape(condition) + (1,) * rank), then, otherwise)


_BITS = {
    np.dtype(type_): bits
    for bits, types in (
        (4, (ml_dtypes.int4, ml_dtypes.uint4, ml_dtypes.float4_e2m1fn)),
        (2, (ml_dtypes.int2, ml_dtypes.uint2)),
    )
    for type_ in types
}
BYTE = 8


def narrow_bits(dtype: Any) -> int | None:
    """Return the bits of elements of less than a byte, which share bytes in buffers; None for other dtypes.

    >>> narrow_bits(ml_dtypes.int4), narrow_bits(bool), narrow_bits("i1")
    (4, None, None)
    """
    return _BITS.get(np.dtype(dtype))


def integer_bits(dtype: Any) -> int:
    """Return the bits of the integers of an array; 1 for conditions."""
    dtype = np.dtype(dtype)
    return 1 if dtype.kind == "b" else narrow_bits(dtype) or BYTE * dtype.itemsize


def low_bits(array: Any) -> Any:
    """Return the bits of an array of elements of less than a byte, each as the lowest bits of a byte."""
    bits = narrow_bits(array.dtype)
    assert bits is not None
    return np.asarray(array).view(np.uint8) & np.uint8((1 << bits) - 1)


def packed_array(array: Any) -> Any:
    """Return the bytes that a buffer holds of an array of elements of less than a byte; other arrays stay.

    >>> packed_array(np.array([1, 2, -1]).astype(ml_dtypes.int4)).tolist()
    [33, 15]
    """
    bits = narrow_bits(array.dtype)
    if bits is None:
        return array
    count = BYTE // bits
    words = low_bits(np.ascontiguousarray(array)).reshape(-1)
    rows = np.pad(words, (0, -len(words) % count)).reshape(-1, count)
    return np.bitwise_or.reduce(rows << np.arange(0, BYTE, bits, dtype=np.uint8), axis=1)


def buffer_form(shape: Sequence[int], dtype: Any) -> tuple[tuple[int, ...], Any]:
    """Return shape and dtype of the array that a buffer is: bytes, where elements have less than one."""
    bits = narrow_bits(dtype)
    return (tuple(shape), dtype) if bits is None else ((-(-prod(shape) * bits // BYTE),), np.uint8)


def unpacked_array(array: Any, shape: Sequence[int], dtype: Any) -> Any:
    """Return the elements that a buffer holds, in a shape.

    Args:
        array: What `packed_array` makes of them.
        shape: The shape.
        dtype: Their dtype.
    """
    bits = narrow_bits(dtype)
    if bits is None:
        return array
    shifts = np.arange(0, BYTE, bits, dtype=np.uint8)
    words = (array[:, np.newaxis] >> shifts & np.uint8((1 << bits) - 1)).reshape(-1)
    return words[: prod(shape)].view(dtype).reshape(tuple(shape))
