"""Rivals of a lost axis."""

from __future__ import annotations

import pytest

pytest.importorskip("jaxlib", reason="the modules are MLIR text")

from shardy_py.trace.axis_sources import find_rivals
from shardy_py.trace.reasons import Reason
from tests.unit.explain.programs import product


def test_of_two_candidates_the_loser_has_no_rival_but_the_winner() -> None:
    """Had the winner not wanted the axis, the loser would have got it."""
    trace = product()
    (lost,) = [one for one in trace.refusals() if one.reason is Reason.LOST]
    visit = trace.deciding_visit(lost)
    (refusal,) = [one for one in trace.visits.refusals(visit) if one.reason is Reason.LOST]
    assert list(find_rivals(trace, visit, refusal)) == []
