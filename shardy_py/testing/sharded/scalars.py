"""Scalars of numpy for element types: numbers, the neutral values of combiners, and what nobody may look at."""

from __future__ import annotations

from typing import Any

import numpy as np

from shardy_py.layout.numpy_arrays import numpy_dtype
from shardy_py.sharding.combiner import Combiner
from shardy_py.testing.numeric.pieces import Array


def scalar_array(element_type: str, number: Combiner | float) -> Array | None:
    """Return a scalar; None where the element type has no such number.

    Args:
        element_type: The element type.
        number: The number, or the combiner whose neutral value it shall be.

    Raises:
        UnsupportedError: numpy has no dtype for the element type.
    """
    dtype = numpy_dtype(element_type)
    value = neutral_value(number, dtype) if isinstance(number, Combiner) else number
    if value is None or (dtype.kind in "biu" and value != value):
        return None
    return np.array(value, dtype)


def neutral_value(combiner: Combiner, dtype: Any) -> Any:
    """Return the number that changes nothing it is combined with, or None.

    Args:
        combiner: The combiner.
        dtype: The dtype of the elements.
    """
    if combiner in (Combiner.ADD, Combiner.MUL):
        return int(combiner is Combiner.MUL)
    if dtype.kind == "b":
        return combiner in (Combiner.AND, Combiner.MIN)
    if combiner in (Combiner.AND, Combiner.OR):
        return None if dtype.kind not in "iu" else 0 if combiner is Combiner.OR else ~np.zeros((), dtype)
    if dtype.kind not in "iu":
        return None if dtype.kind == "c" else np.inf if combiner is Combiner.MIN else -np.inf
    limits = np.iinfo(dtype)
    return limits.max if combiner is Combiner.MIN else limits.min


def poison(dtype: Any) -> Any:
    """Return an element that no program may look at."""
    if dtype.kind in "biu":
        return True if dtype.kind == "b" else np.iinfo(dtype).max
    return np.nan
