"""How far two runs are apart."""

from __future__ import annotations

from typing import Any

import pytest

numpy = pytest.importorskip("numpy")
pytest.importorskip("ml_dtypes")

from shardy_py.jax.deviations import Deviation, compare_results  # noqa: E402

INFINITY, NAN = float("inf"), float("nan")


def _compare(left: Any, right: Any, dtype: str = "float32", tolerance: float | None = None) -> Deviation:
    (actual,) = compare_results([numpy.array(left, dtype)], [numpy.array(right, dtype)], tolerance=tolerance)
    return actual


def test_the_relative_difference_is_that_of_the_whole_result() -> None:
    """The largest difference counts, relative to the largest element of the second run."""
    actual = _compare([1.0, 100.0, 0.5], [1.0, 100.0, 0.25])
    assert (actual.absolute, actual.relative) == (0.25, 0.0025)
    assert not actual.is_within
    assert _compare([1.0, 100.0, 0.5], [1.0, 100.0, 0.25], tolerance=0.01).is_within


@pytest.mark.parametrize(
    ("left", "right", "nans", "is_within"),
    [
        ([NAN, 1.0], [NAN, 1.0], 0, True),
        ([NAN, 1.0], [2.0, 1.0], 1, False),
        ([2.0, NAN], [NAN, 1.0], 2, False),
        ([INFINITY, 1.0], [INFINITY, 1.0], 0, True),
        ([INFINITY, 1.0], [-INFINITY, 1.0], 0, False),
        ([INFINITY, 1.0], [3.0, 1.0], 0, False),
        ([0.0], [0.0], 0, True),
        ([1e-9], [0.0], 0, False),
        ([], [], 0, True),
    ],
)
def test_numbers_that_are_none(left: list[float], right: list[float], nans: int, is_within: bool) -> None:
    """NaNs and infinities are the same only where both runs have them."""
    actual = _compare(left, right)
    assert (actual.nans, actual.is_within) == (nans, is_within)


def test_integers_must_be_equal() -> None:
    """No tolerance is for integers, booleans and keys, given or not."""
    assert _compare([1, 2], [1, 2], "int32").is_within
    assert not _compare([1, 2_000_000], [1, 2_000_001], "int32", tolerance=0.1).is_within
    assert not _compare([2**63 - 1], [2**63 - 2], "int64").is_within
    assert not _compare([True], [False], "bool").is_within


def test_complex_numbers_are_compared_by_magnitude() -> None:
    """Both parts count."""
    assert not _compare([1 + 1j], [1 - 1j], "complex64").is_within
    assert _compare([1 + 1j], [1 + 1.0001j], "complex64").is_within
