"""Elements outside of a tensor to which maps lead."""

from __future__ import annotations

import pytest

from shardy_py.indexing import IndexingMap, first_outside
from shardy_py.indexing.ranges import Outside


@pytest.mark.parametrize(
    ("text", "shape", "expected"),
    [
        ("(i, j) -> (i, j), domain: i in [0, 3], j in [0, 6]", (4, 7), None),
        ("(i, j) -> (i, 6 - j), domain: i in [0, 3], j in [0, 6]", (4, 7), None),
        ("(i, j) -> (i + 1, j), domain: i in [0, 3], j in [0, 6]", (4, 7), Outside((3, 6), 0, 4)),
        ("(i, j) -> (i, j - 1), domain: i in [0, 3], j in [0, 6]", (4, 7), Outside((0, 0), 1, -1)),
        ("(i, j) -> (i, 5 - j), domain: i in [0, 3], j in [0, 6]", (4, 7), Outside((0, 6), 1, -1)),
        ("(i)[k] -> (i, k), domain: i in [0, 3], k in [0, 9]", (4, 7), Outside((3, 9), 1, 9)),
        ("(i) -> (i * i), domain: i in [0, 3]", (10,), None),
        ("(i) -> (i * i), domain: i in [0, 3]", (9,), Outside((3,), 0, 9)),
        ("(i) -> ((i + 5) mod 7), domain: i in [0, 6]", (7,), None),
        ("(i) -> ((i + 5) mod 7), domain: i in [0, 6]", (6,), Outside((1,), 0, 6)),
        ("(i) -> (i - 2), domain: i in [0, 6], i + 1 in [3, 7]", (5,), None),
        ("(i) -> (i - 2), domain: i in [0, 6], i + 1 in [2, 7]", (5,), Outside((1,), 0, -1)),
        ("(i) -> (max(i - 2, 2 - i)), domain: i in [0, 8]", (7,), None),
        ("(i)[]{r} -> (i + r), domain: i in [0, 3], r in [0, 9]", (4,), None),
        ("(i) -> (i * i), domain: i in [0, 99999]", (9,), None),
        ("() -> ()", (), None),
    ],
)
def test_first_place_outside(text, shape, expected) -> None:
    """The first place outside is found, on the domain; of many places only where a sum of variables leads there."""
    assert first_outside(IndexingMap.parse(text), shape) == expected
