"""Goals: what is better."""

from __future__ import annotations

import pytest

from shardy_py.cost.advice.pricing import Figures, Goal


def _figures(*, sent: float = 1.0, seconds: float = 1.0, peak: float = 1.0) -> Figures:
    return Figures(sent, seconds, 0.0, peak, 1.0)


@pytest.mark.parametrize(
    ("measure", "better"), [("time", {"seconds": 0.5}), ("bytes", {"sent": 0.5}), ("memory", {"peak": 0.5})]
)
def test_less_of_the_measure_is_better(measure, better):
    """Each goal looks at its own measure first."""
    assert Goal(measure).is_better(_figures(**better), _figures())
    assert not Goal(measure).is_better(_figures(), _figures(**better))


def test_a_gain_must_be_large_enough():
    """A part of the measure that is too small does not count."""
    goal = Goal("bytes")
    assert goal.is_better(_figures(sent=0.98), _figures(), by=0.01)
    assert not goal.is_better(_figures(sent=0.995), _figures(), by=0.01)


def test_what_fits_is_better_than_what_does_not():
    """Memory comes first where it is exceeded; where it is not, it does not count."""
    goal = Goal("time", memory=10.0)
    assert goal.is_better(_figures(seconds=2.0, peak=9.0), _figures(seconds=1.0, peak=11.0), by=0.01)
    assert goal.is_better(_figures(seconds=2.0, peak=12.0), _figures(seconds=1.0, peak=13.0), by=0.01)
    assert not goal.is_better(_figures(seconds=2.0, peak=5.0), _figures(seconds=1.0, peak=9.0), by=0.01)
