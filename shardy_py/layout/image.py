"""The image of an array in memory, in numpy: elements in physical order, padding between them.

numpy is imported when a function is called: the rest of the library does not need it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from shardy_py.layout.index import linear_index, multi_indices
from shardy_py.layout.shape import Shape
from shardy_py.layout.sizes import padded_elements
from shardy_py.layout.values import invalid

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray


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
            "shape-mismatch", f"a buffer of sizes {source.shape} is no image of {shape}: it has {count} elements"
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
