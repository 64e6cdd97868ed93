"""Deviations between two runs of a program, result by result."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from shardy_py.values import frozen

TOLERANCES = {
    "float64": 1e-9,
    "complex128": 1e-9,
    "float32": 2e-3,
    "complex64": 2e-3,
    "float16": 1e-2,
    "bfloat16": 4e-2,
}
"""The largest relative deviation by dtype: several devices add in another order, and rounding errors grow."""

SMALL_FLOAT_TOLERANCE = 0.25
"""The largest relative deviation of floats of 8 bits and less."""


@frozen
class Deviation:
    """Deviation of a result between two runs.

    Args:
        absolute: The largest difference of two elements; infinite where one is infinite and the other is not.
        relative: That divided by the largest finite element of the run that is compared with.
        nans: The number of elements that are NaN in one run only.
        tolerance: The largest ``relative`` that is accepted.
    """

    absolute: float
    relative: float
    nans: int
    tolerance: float

    @property
    def is_within(self) -> bool:
        """True if the result is the same within the tolerance."""
        return not self.nans and self.relative <= self.tolerance


def compare_results(
    results: Sequence[Any], expected: Sequence[Any], *, tolerance: float | None = None
) -> list[Deviation]:
    """Compare the results of two runs.

    Args:
        results: The arrays of one run.
        expected: Those of the run that is compared with.
        tolerance: The largest relative deviation of floats; by default it depends on the dtype. Integers and booleans
            must be equal.
    """
    return [_compare(*pair, tolerance) for pair in zip(results, expected, strict=True)]


def default_tolerance(dtype: Any) -> float:
    """Return the tolerance of a numpy dtype.

    >>> import numpy
    >>> default_tolerance(numpy.dtype("float32")), default_tolerance(numpy.dtype("int32"))
    (0.002, 0.0)
    """
    if dtype.kind in "biu" or "int" in dtype.name:
        return 0.0
    return TOLERANCES.get(dtype.name, SMALL_FLOAT_TOLERANCE)


def _compare(result: Any, expected: Any, tolerance: float | None) -> Deviation:
    import numpy

    one, other = numpy.asarray(result), numpy.asarray(expected)
    allowed = default_tolerance(other.dtype)
    if tolerance is not None and allowed:
        allowed = tolerance
    one, other = _wide(one), _wide(other)
    nans = numpy.isnan(one) != numpy.isnan(other)
    with numpy.errstate(invalid="ignore"):
        apart = numpy.abs(one - other)
    # Equal infinities do not differ, nor do elements that are NaN in both runs.
    apart = numpy.where((one == other) | numpy.isnan(one) | numpy.isnan(other), 0.0, apart)
    absolute = float(apart.max(initial=0.0))
    sizes = numpy.abs(other)
    scale = float(sizes.max(initial=0.0, where=numpy.isfinite(sizes)))
    relative = 0.0 if absolute == 0 else absolute / scale if scale else float("inf")
    return Deviation(absolute, relative, int(nans.sum()), allowed)


def _wide(array: Any) -> Any:
    """Return an array as one of doubles; integers of 64 bits lose less in long doubles."""
    if array.dtype.kind == "c":
        return array.astype("complex128")
    return array.astype("longdouble" if array.dtype.kind in "iu" and array.dtype.itemsize == 8 else "float64")
