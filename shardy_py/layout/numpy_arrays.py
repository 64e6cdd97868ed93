"""Arrays of numpy: dtypes for element types, and the image of an array in memory with its padding.

numpy is imported when a function is called: the rest of the library does not need it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from shardy_py.errors import Diagnostic, UnsupportedError
from shardy_py.layout.index import linear_index, multi_indices
from shardy_py.layout.shape import Shape
from shardy_py.layout.sizes import padded_elements
from shardy_py.layout.values import invalid
from shardy_py.support.element_types import xla_element_type

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray


_ML_FLOATS = {
    "bf16": "bfloat16",
    "f4e2m1fn": "float4_e2m1fn",
    "f8e3m4": "float8_e3m4",
    "f8e4m3": "float8_e4m3",
    "f8e4m3fn": "float8_e4m3fn",
    "f8e4m3b11fnuz": "float8_e4m3b11fnuz",
    "f8e4m3fnuz": "float8_e4m3fnuz",
    "f8e5m2": "float8_e5m2",
    "f8e5m2fnuz": "float8_e5m2fnuz",
    "f8e8m0fnu": "float8_e8m0fnu",
}
_SMALL_INTEGERS = {"s1": "int1", "s2": "int2", "s4": "int4", "u1": "uint1", "u2": "uint2", "u4": "uint4"}
_NUMPY_KINDS = {"s": "int", "u": "uint", "f": "float", "c": "complex"}


def numpy_dtype(element_type: str) -> Any:
    """Return the numpy dtype of an element type in MLIR's notation.

    >>> numpy_dtype("f32").name, numpy_dtype("ui8").name, numpy_dtype("i1").name, numpy_dtype("bf16").name
    ('float32', 'uint8', 'bool', 'bfloat16')

    Raises:
        UnsupportedError: no dtype has these elements.
    """
    import ml_dtypes
    import numpy

    name = xla_element_type(element_type)
    if name is None:
        message = f"numpy has no dtype for elements of the type {element_type}"
        raise UnsupportedError(Diagnostic("unknown-dtype", message))
    if name == "pred":
        return numpy.dtype(bool)
    other = _ML_FLOATS.get(name) or _SMALL_INTEGERS.get(name)
    if other is not None:
        return numpy.dtype(getattr(ml_dtypes, other))
    return numpy.dtype(f"{_NUMPY_KINDS[name[0]]}{name[1:]}")


def image(array: ArrayLike, shape: Shape, *, fill: Any = 0) -> NDArray[Any]:
    """Return the elements of an array as they lie in memory.

    Args:
        array: The array; its sizes are those of the shape, its numpy type may be any.
        shape: The shape with its layout.
        fill: The value of padding.

    Returns:
        A vector of all positions, padding included.

    Raises:
        VerificationError: the sizes differ, or a dimension is unbounded.
    """
    import numpy as np

    source = np.asarray(array)
    if source.shape != shape.static_bounds:
        raise invalid("shape-mismatch", f"an array of sizes {source.shape} is no {shape}")
    buffer = np.full(padded_elements(shape), fill, source.dtype)
    if source.size:
        buffer[_positions(shape)] = source
    return buffer


def from_image(buffer: ArrayLike, shape: Shape) -> NDArray[Any]:
    """Return the array whose image in memory is given; the values of padding are ignored.

    Raises:
        VerificationError: the buffer has another number of elements, or a dimension is unbounded.
    """
    import numpy as np

    source = np.asarray(buffer)
    count = padded_elements(shape)
    if source.shape != (count,):
        raise invalid(
            "shape-mismatch", f"a buffer of sizes {source.shape} is not an image of {shape}: it has {count} elements"
        )
    if 0 in shape.static_bounds:
        return np.empty(shape.static_bounds, source.dtype)
    elements: NDArray[Any] = source[_positions(shape)]
    return elements.reshape(shape.static_bounds)


def padding_mask(shape: Shape) -> NDArray[np.bool_]:
    """Return for every position in memory whether it is padding.

    Raises:
        VerificationError: a dimension is unbounded.
    """
    import numpy as np

    _, inside = multi_indices(shape, np.arange(padded_elements(shape)))
    return np.broadcast_to(~np.asarray(inside), (padded_elements(shape),)).copy()


def _positions(shape: Shape) -> Any:
    import numpy as np

    return linear_index(shape, np.ogrid[tuple(slice(size) for size in shape.static_bounds)])
