"""Moves, chains and refusals as lines."""

from __future__ import annotations

from attrs import evolve

from shardy_py.explain.answer.moves import (
    AxisMove,
    CandidateDimension,
    Chain,
    Origin,
    Refusal,
    chain_lines,
    move_line,
    refusal_line,
    refusal_lines,
)

MOVE = AxisMove("%1", 0, "%0", 1, '"a"', "toy.turn %1", "/x/model.py:7:8", "i", "forward", 1, 2, "last", "basic")


def test_a_move_says_what_came_from_where_and_in_which_order() -> None:
    """Op and place, factor, user priority, level with its name, strategy."""
    assert move_line(MOVE) == (
        '%1 dim 0 <- %0 dim 1 "a": forward through toy.turn %1 at model.py:7:8, factor i; '
        "user priority 1, level 2 (last), basic"
    )


def test_a_move_within_a_sharding_group_goes_through_no_op() -> None:
    """It happens as an op changes another member."""
    line = move_line(evolve(MOVE, direction="group", factor="", location="", level_name=""))
    assert line == '%1 dim 0 <- %0 dim 1 "a": with its sharding group, at toy.turn %1; user priority 1, level 2, basic'


def test_a_chain_ends_with_its_annotation() -> None:
    """The user priority is named where there is one."""
    origin = Origin("x", 1, "function argument x", "argument", '<@mesh, [{}, {"a"}]>', 0)
    assert list(chain_lines(Chain('"a"', (MOVE,), origin)))[1:] == ['x dim 1: annotated <@mesh, [{}, {"a"}]>']
    later = Chain('"a"', (), evolve(origin, user_priority=2))
    assert list(chain_lines(later)) == ['x dim 1: annotated <@mesh, [{}, {"a"}]>, user priority 2']


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
