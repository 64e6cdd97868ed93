"""Halos along one dimension, whose prices follow from the shards at its ends."""

from __future__ import annotations

import random

import pytest

from shardy_py.cost.estimates.halos import Reach
from shardy_py.ir.interfaces.costs import Window


def reach_of(draw: random.Random, count: int) -> Reach:
    """Return the reach of some window over so many shards."""
    number = draw.randint
    window = Window(
        0, 0, 0, size=number(1, 9), stride=number(1, 4), low=number(-30, 30), dilation=number(1, 5), is_padded=True
    )
    part = number(1, 7)
    return Reach(window, part * count - number(0, part - 1), part, number(1, 9), count)


@pytest.mark.parametrize("seed", range(3))
def test_what_is_read_beyond_a_shard_follows_from_the_first_and_last_shards(seed: int) -> None:
    """The most that any shard reads to the left and right is found among few of them."""
    draw = random.Random(seed)
    for _ in range(300):
        reach = reach_of(draw, draw.randint(2, 40))
        shards = range(reach.count)
        lefts = [shard * reach.part - reach.start(shard) for shard in shards]
        rights = [reach.end(shard) - (shard + 1) * reach.part for shard in shards]
        assert reach.beyond == (max(lefts), max(rights), max(lefts[1:]), max(rights[:-1])), reach


def test_padding_is_sent_by_nobody() -> None:
    """However far the padding reaches, each side has as many transfers as there are other shards, at most."""
    for low in (10, 1000, 2**61):
        reach = Reach(Window(0, 0, 0, size=1, low=low, is_padded=True), 8, 4, (low + 8) // 2, 2)
        assert len(reach.exchange.sent) <= 2
