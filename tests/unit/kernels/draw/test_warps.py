"""Sectors and passes of what a warp accesses."""

from __future__ import annotations

import pytest

from shardy_py.kernels.draw.accesses import WarpAccess


def access(step: int, width: int, *, is_shared: bool, lanes: int = 32) -> WarpAccess:
    """An access whose threads stand a step apart."""
    places = tuple(lane * step if lane < lanes else None for lane in range(32))
    return WarpAccess("tensor.extract", "memory", False, is_shared, places, width)


@pytest.mark.parametrize(
    ("step", "width", "sectors", "cost"),
    [
        (4, 4, 4, "4 sectors"),
        (8, 8, 8, "8 sectors"),
        (16, 16, 16, "16 sectors"),
        (2, 2, 2, "2 sectors"),
        (0, 4, 1, "1 sector"),
        (680, 4, 32, "32 sectors instead of 4"),
    ],
)
def test_sectors(step: int, width: int, sectors: int, cost: str) -> None:
    """Neighbours share sectors of 32 bytes; those that are far apart move a sector each."""
    found = access(step, width, is_shared=False)
    assert (found.sectors, found.cost) == (sectors, cost)


@pytest.mark.parametrize(
    ("step", "width", "passes"),
    [(4, 4, 1), (0, 4, 1), (128, 4, 32), (132, 4, 1), (8, 4, 2), (8, 8, 2), (16, 16, 4), (2, 2, 1)],
)
def test_conflicts_of_banks(step: int, width: int, passes: int) -> None:
    """Words of one bank take a pass each, one word for several threads only one; wide accesses need several anyway."""
    found = access(step, width, is_shared=True)
    assert found.passes == passes
    assert ("instead of" in found.cost) == (passes > found.fewest_passes)


def test_threads_that_take_no_part() -> None:
    """Threads without a place touch nothing."""
    found = access(4, 4, is_shared=False, lanes=3)
    assert (found.bytes, found.sectors, list(found.lines)) == (12, 1, [0])
    assert found.lines[0] == {0: [0], 1: [1], 2: [2]}
