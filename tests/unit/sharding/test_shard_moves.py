"""Moves of elements between parts of a dimension."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from shardy_py.sharding.shard_moves import covered, own_runs, plan_rounds, sent_elements


@given(
    st.integers(0, 20),
    st.integers(1, 6),
    st.integers(-3, 3),
    st.lists(st.integers(-8, 24), min_size=6, max_size=6),
    st.integers(1, 9),
)
def test_rounds_bring_each_window_its_elements(size: int, parts: int, shift: int, starts: list[int], wide: int) -> None:
    """After all rounds each part has every element of its window that exists, once, and no round sends twice."""
    part = -(-size // parts)
    held = own_runs(size, parts, part, shift)
    rounds = plan_rounds(held, starts[:parts], wide)
    found: list[dict[int, int]] = [{} for _ in range(parts)]
    for item in rounds:
        assert len({move.source for move in item.moves}) == len({move.target for move in item.moves}) == len(item.moves)
        for move in item.moves:
            for step in range(move.size):
                assert move.place + step not in found[move.target]
                found[move.target][move.place + step] = move.source * part + move.start + step + shift
    for start, own, limits in zip(starts, found, covered(rounds, parts), strict=False):
        wanted = {place: start + place for place in range(wide) if shift <= start + place < size + shift}
        assert own == wanted
        assert limits == ((min(wanted), max(wanted) + 1) if wanted else (0, 0))


def test_what_a_part_has_does_not_move() -> None:
    """Windows inside of the parts need no communication."""
    assert sent_elements(plan_rounds(own_runs(16, 4, 4), [1, 5, 9, 13], 3)) == 0


def test_parts_far_away_are_not_looked_at() -> None:
    """Ten thousand parts shift their elements by one; all pairs of parts would be a hundred million."""
    rounds = plan_rounds(own_runs(10_000, 10_000, 1), [part - 1 for part in range(10_000)], 1)
    assert [len(item.moves) for item in rounds] == [9_999]


def test_neighbors_send_in_one_round_where_they_can() -> None:
    """Two parts that need an element of each other swap them at once."""
    assert sent_elements(plan_rounds(own_runs(4, 2, 2), [-1, 1], 4)) == 1


def test_the_parts_that_send_most_often_send_first() -> None:
    """Parts of 2 become parts of 7: rounds by distance alone would bring each part 13 elements."""
    held, starts = own_runs(14, 8, 2), [part // 4 * 7 for part in range(8)]
    assert sent_elements(plan_rounds(held, starts, 7)) == 11
