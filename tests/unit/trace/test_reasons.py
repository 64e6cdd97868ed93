"""Reasons of refusals."""

from __future__ import annotations

from shardy_py.trace.reasons import MEANINGS, Reason


def test_every_reason_has_a_meaning() -> None:
    """One line each, and no two alike."""
    assert set(MEANINGS) == set(Reason)
    assert len(set(MEANINGS.values())) == len(Reason)
