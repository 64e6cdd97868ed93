"""How long collectives take, against numbers worked out by hand and by counting what crosses each link."""

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardy_py.cost.estimates import formulas
from shardy_py.cost.machines.machine import Link
from shardy_py.cost.machines.placement import LinkPart

RING = LinkPart(Link("r", 4, 10.0, 1.0, "ring"), 4)
LINE = LinkPart(Link("l", 4, 10.0, 1.0, "line"), 4)
SWITCH = LinkPart(Link("s", 4, 10.0, 1.0, "all-to-all"), 4)
HALF = LinkPart(Link("r", 4, 10.0, 1.0, "ring"), 2, 1)
APART = LinkPart(Link("l", 4, 10.0, 1.0, "line"), 2, 2)


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        (SWITCH, 3 * (100 / 10 + 1)),  # three parts of 100 bytes, one after the other
        (LINE, 3 * (100 / 10 + 1)),
        (RING, 3 * 100 / 20 + 2),  # both ways at once, so two steps
        (HALF, 1 * (100 / 10 + 1)),  # half of a ring is a line
        (APART, 1 * (100 / 5 + 2)),  # two hops, over links that the devices between use, too
    ],
)
def test_an_all_gather_along_one_link(part, expected):
    """Each device receives the parts of all others."""
    assert formulas.all_gather_seconds([part], 100) == expected
    assert formulas.reduce_scatter_seconds([part], 100) == expected


def test_an_all_gather_along_two_links_takes_the_slow_one_first():
    """There the parts are still small: 3 of 8 bytes, then 3 of 32."""
    slow = LinkPart(Link("slow", 4, 2.0, 0.0, "all-to-all"), 4)
    fast = LinkPart(Link("fast", 4, 16.0, 0.0, "all-to-all"), 4)
    expected = 3 * 8 / 2 + 3 * 32 / 16
    assert formulas.all_gather_seconds([slow, fast], 8) == formulas.all_gather_seconds([fast, slow], 8) == expected


def test_an_all_reduce_scatters_and_gathers():
    """Of 400 bytes each device gets 100 in a sum, and hands them around again."""
    assert formulas.all_reduce_seconds([SWITCH], 400) == 2 * 3 * (100 / 10 + 1)


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        (SWITCH, 3 * 25 / 10 + 3),
        (LINE, 4 * 25 / 10 + 3),  # two devices left of the middle send 25 bytes to two right of it
        (RING, 4 * 25 / 2 / 10 + 2),
        (HALF, 1 * 50 / 10 + 1),
        (APART, 1 * 50 / 5 + 2),
    ],
)
def test_an_all_to_all_along_one_link(part, expected):
    """A shard of 100 bytes is divided among the devices."""
    assert formulas.all_to_all_seconds([part], 100) == expected


@pytest.mark.parametrize(
    ("part", "expected"), [(SWITCH, 100 / 10 + 1), (LINE, 100 / 10 + 2), (RING, 100 / 10 + 2), (APART, 100 / 5 + 2)]
)
def test_a_permutation_along_one_link(part, expected):
    """Each shard of 100 bytes goes to one other device."""
    assert formulas.permute_seconds([part], 100) == expected


@pytest.mark.parametrize("size", [2, 3, 4, 5, 6, 7, 8])
@pytest.mark.parametrize("topology", ["line", "ring"])
def test_an_all_to_all_puts_on_a_link_what_crosses_it(size, topology):
    """The largest load of a link, where every message takes a shortest way (both, where they are equal)."""
    load = {}
    for source, target in permutations(range(size), 2):
        for way in _ways(source, target, size, topology):
            for edge in way[0]:
                load[edge] = load.get(edge, 0) + way[1]
    part = LinkPart(Link("l", size, 1.0, 0.0, topology), size)
    assert formulas.all_to_all_seconds([part], size) == pytest.approx(max(load.values()))


def _ways(source, target, size, topology):
    """Return the directed edges of each shortest way, with the share that takes it."""
    step = 1 if target > source else -1
    straight = [(place, place + step) for place in range(source, target, step)]
    if topology == "line":
        return [(straight, 1)]
    forward = (target - source) % size
    up = [((source + k) % size, (source + k + 1) % size) for k in range(forward)]
    down = [((source - k) % size, (source - k - 1) % size) for k in range(size - forward)]
    if len(up) == len(down):
        # The two ways between two devices are one and the same pair of links only on a ring of two.
        return [([(*edge, "up") for edge in up], 0.5), ([(*edge, "down") for edge in down], 0.5)]
    return [([(*edge, "up") for edge in up], 1)] if len(up) < len(down) else [([(*edge, "down") for edge in down], 1)]


PARTS = st.builds(
    LinkPart,
    st.builds(
        Link,
        st.just("l"),
        st.just(64),
        st.floats(1, 100),
        st.floats(0, 1),
        st.sampled_from(["ring", "line", "all-to-all"]),
    ),
    st.sampled_from([2, 4, 8]),
    st.sampled_from([1, 2, 8]),
)


@given(st.lists(PARTS, min_size=1, max_size=3), st.floats(1, 1e6), st.floats(1, 1e6))
def test_more_bytes_take_no_less_time(parts, first, second):
    """Every formula grows with the bytes."""
    few, many = sorted((first, second))
    for formula in (
        formulas.all_gather_seconds,
        formulas.reduce_scatter_seconds,
        formulas.all_reduce_seconds,
        formulas.all_to_all_seconds,
        formulas.permute_seconds,
    ):
        assert 0 <= formula(parts, few) <= formula(parts, many)


@given(st.lists(PARTS, min_size=1, max_size=3), st.floats(1, 1e6))
def test_an_all_reduce_costs_its_two_halves(parts, size):
    """It takes as long as scattering and gathering, and longer than gathering what is reduced only once."""
    shard = size / formulas.group_size(parts)
    halves = formulas.reduce_scatter_seconds(parts, shard) + formulas.all_gather_seconds(parts, shard)
    assert formulas.all_reduce_seconds(parts, size) == pytest.approx(halves)
