"""Combiners on arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from shardy_py.sharding.combiner import Combiner
from shardy_py.testing.numeric.pieces import Array

_FUNCTIONS: dict[Combiner, Callable[[Array, Array], Array]] = {
    Combiner.ADD: np.add,
    Combiner.MUL: np.multiply,
    Combiner.MIN: np.minimum,
    Combiner.MAX: np.maximum,
    Combiner.AND: np.bitwise_and,
    Combiner.OR: np.bitwise_or,
}


def combine_arrays(combiner: Combiner, left: Any, right: Any) -> Array:
    """Return what the partial results of two devices combine to.

    Raises:
        TypeError: the element type has no such function, as that of floating-point numbers has no bitwise one.
    """
    return _FUNCTIONS[combiner](left, right)


def identity_like(array: Array, combiner: Combiner) -> Array:
    """Return an array of the same shape and type that changes nothing it is combined with.

    Where the combiner gives the same however often a value counts, that is the array itself.
    """
    if combiner.is_idempotent:
        return array
    return np.zeros_like(array) if combiner is Combiner.ADD else np.ones_like(array)
