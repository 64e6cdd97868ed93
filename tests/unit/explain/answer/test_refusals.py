"""Refusals as lines."""

from __future__ import annotations

from attrs import evolve

from shardy_py.explain.answer.moves import CandidateDimension, Refusal, refusal_line, refusal_lines

REFUSAL = Refusal(
    "lost",
    '"a"',
    "dim 1 of %0 took it",
    "%0",
    0,
    op="toy.dot %0",
    location="/x/model.py:7:8",
    factor="i",
    candidate=CandidateDimension("x", 0, ('"a"',), ("function argument x",)),
    user_priority=0,
    level=2,
    strategy="aggressive",
)


def test_a_refusal_names_candidate_op_and_reason() -> None:
    """With the place of the op and the level that decided."""
    assert refusal_line(REFUSAL) == (
        'lost: "a" on x dim 0 (from function argument x) stopped at toy.dot %0 at model.py:7:8, factor i: '
        "dim 1 of %0 took it [user priority 0, level 2, aggressive]"
    )


def test_a_refusal_further_away_says_where_and_how_far() -> None:
    """Also what kept the axis back at earlier levels."""
    line = refusal_line(evolve(REFUSAL, distance=2, earlier=("direction at level 0",)))
    assert "stopped for %0 dim 0 at toy.dot %0" in line
    assert line.endswith("[before: direction at level 0] [2 ops away]")


def test_equal_lines_are_printed_once() -> None:
    """Parts of an axis, or several candidates, often stop for the same reason."""
    assert len(list(refusal_lines((REFUSAL, REFUSAL, evolve(REFUSAL, factor="j"))))) == 2
