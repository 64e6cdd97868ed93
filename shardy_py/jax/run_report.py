"""The report of a run on devices: its results, and how far they are from those of another run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from shardy_py.api.result import Result
from shardy_py.values import frozen

if TYPE_CHECKING:
    from shardy_py.jax.deviations import Deviation

_RESULT_INFO = "jax.result_info"


@frozen
class ResultLine:
    """One result of a run.

    Args:
        name: What the program calls it, or ``result0`` and so on.
        type: Its dtype and shape.
        sharding: Its sharding, or "" for a replicated one.
        largest: The largest finite magnitude of its elements; 0 without any.
        not_finite: How many elements are infinite or NaN.
        difference: How far it is from the run it was compared with; None without one.
    """

    name: str
    type: str
    sharding: str
    largest: float
    not_finite: int
    difference: Deviation | None = None


@frozen
class RunReport:
    """The outcome of a run.

    Args:
        devices: How many devices it ran on.
        platform: Which they are, for example ``cpu``.
        results: The results.
        seconds: How long the run took, without compiling.
        compared_with: What it was compared with, in words; "" without a comparison.
        arrays: The results themselves, as arrays of numpy.
        notes: What a comparison cannot tell.
    """

    devices: int
    platform: str
    results: tuple[ResultLine, ...]
    seconds: float
    compared_with: str = ""
    arrays: tuple[Any, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def is_within(self) -> bool:
        """True where all differences are within their tolerances."""
        return all(item.difference is None or item.difference.is_within for item in self.results)


def result_lines(
    result: Result,
    shown: Sequence[tuple[str, str]],
    arrays: Sequence[Any],
    expected: Sequence[Any] | None,
    *,
    tolerance: float | None,
) -> tuple[ResultLine, ...]:
    """Return what a report says of the results, which are compared with others.

    Args:
        result: The propagated program.
        shown: The type and the sharding of each result, as text.
        arrays: The results.
        expected: The results of another run; None for no comparison.
        tolerance: The largest relative difference of floats; by default it depends on the dtype.
    """
    from shardy_py.jax.deviations import compare_results

    differences: Sequence[Deviation | None] = [None] * len(arrays)
    if expected is not None:
        differences = compare_results(arrays, expected, tolerance=tolerance)
    return tuple(
        _line(result, number, type_, sharding, array, difference)
        for number, ((type_, sharding), array, difference) in enumerate(zip(shown, arrays, differences, strict=True))
    )


def _line(
    result: Result, number: int, type_: str, sharding: str, array: Any, difference: Deviation | None
) -> ResultLine:
    import numpy

    wide = numpy.abs(array.astype("complex128" if array.dtype.kind == "c" else "float64"))
    finite = numpy.isfinite(wide)
    attributes = result.main.attributes.get("res_attrs") or ()
    info = str(attributes[number].get(_RESULT_INFO, "")) if number < len(attributes) else ""
    return ResultLine(
        name=info.strip('"') or f"result{number}",
        type=type_,
        sharding=sharding,
        largest=float(wide.max(initial=0.0, where=finite)),
        not_finite=int((~finite).sum()),
        difference=difference,
    )
