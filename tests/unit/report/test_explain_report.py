"""Reshards on a terminal."""

from __future__ import annotations

import pytest

from shardy_py.explain.report.explain import explanation_data, format_reshard, print_reshard
from shardy_py.explain.reshards.explain_reshard import CommunicationLine, ReshardExplanation
from shardy_py.explain.reshards.proposals import Trial


def explanation(kind: str, before: str, after: str, *trials: Trial) -> ReshardExplanation:
    """Return the explanation of something that moves no dimension."""
    return ReshardExplanation(
        CommunicationLine(3, kind, "%1", before, after, "operand 0 of toy.add %2"), (), (), trials
    )


@pytest.mark.parametrize(
    ("kind", "before", "after", "expected"),
    [
        ("sdy.reshard", "<@mesh, [{}]>", "<@mesh, [{}]>", "nothing has to be sent"),
        ("sdy.reshard", '<@mesh, [{}], unreduced={"a"}>', "<@mesh, [{}]>", "unreduced axes"),
        ("sdy.all_reduce", "<@mesh, [{}]>", "<@mesh, [{}]>", "unreduced axes"),
    ],
)
def test_what_moves_no_dimension_says_so(kind: str, before: str, after: str, expected: str) -> None:
    """A constraint that is met already sends nothing."""
    assert expected in format_reshard(explanation(kind, before, after))


def test_the_table_counts_by_kind_and_shows_failures(capsys: pytest.CaptureFixture[str]) -> None:
    """Kinds that did not change are left out; a proposal that cannot be solved says why."""
    counts = {"sdy.all_reduce": 1, "sdy.reshard": 2}
    trials = (
        Trial("open", "open it", True, counts, {"sdy.all_reduce": 1}, 4),
        Trial("constrain", "constrain it", False, counts, {}, 0, "error: no"),
    )
    one = explanation("sdy.reshard", "a", "b", *trials)
    print_reshard(one)
    text = capsys.readouterr().out
    assert "3 -> 1 (reshard 2 -> 0)" in text
    assert "fails" in text
    assert "error: no" in text
    assert explanation_data(one)["trials"][0]["values_changed"] == 4
