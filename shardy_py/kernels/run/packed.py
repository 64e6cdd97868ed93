"""Arrays of elements of 4 and 2 bits as buffers hold them: packed, the first in the lowest bits of a byte."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import ml_dtypes
import numpy as np

_BITS = {
    np.dtype(type_): bits
    for bits, types in ((4, (ml_dtypes.int4, ml_dtypes.uint4)), (2, (ml_dtypes.int2, ml_dtypes.uint2)))
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
