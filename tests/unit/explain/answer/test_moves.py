"""Moves and chains as lines."""

from __future__ import annotations

from attrs import evolve

from shardy_py.explain.answer.moves import AxisMove, Chain, Origin, chain_lines, move_line

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
