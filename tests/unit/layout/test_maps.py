"""Layouts as indexing maps, against the positions that index arithmetic gives."""

from __future__ import annotations

from itertools import product

import pytest

from shardy_py.errors import VerificationError
from shardy_py.layout import (
    inverse_indexing_map,
    linear_index,
    multi_index,
    padded_elements,
    parse_array,
    to_indexing_map,
)

TEXTS = [
    "f32[2,3,4]",
    "f32[2,3,4]{0,2,1}",
    "f32[3,5]{1,0:T(2,2)}",
    "f32[8,8]{1,0:T(2,4)(2,1,1,1)}",
    "f32[6,4,5]{0,2,1:T(2,3)}",
    "f32[2,3,4,5,6]{4,3,2,1,0:T(*,*,2,*,3)}",
    "bf16[300]{0:T(128)(2,1)}",
    "f32[8]{0:T(2,2)}",
    "f32[10]{0:L(16)}",
    "u32[]{:T(128)}",
    "f32[<=4,3]{0,1}",
]


@pytest.mark.parametrize("text", TEXTS)
def test_the_map_gives_positions(text: str) -> None:
    """At every index the map gives the position of the element, and every index is in its domain."""
    shape = parse_array(text)
    map_ = to_indexing_map(shape)
    for index in product(*map(range, shape.static_bounds)):
        assert map_.evaluate(index) == [linear_index(shape, index)]
        assert map_.holds(index)


@pytest.mark.parametrize("text", TEXTS)
def test_the_inverse_gives_elements(text: str) -> None:
    """At every position the inverse gives the index of the element; positions of padding are not in its domain."""
    shape = parse_array(text)
    map_ = inverse_indexing_map(shape)
    for position in range(padded_elements(shape)):
        index = multi_index(shape, position)
        assert bool(map_.holds([position])) == (index is not None)
        if index is not None:
            assert tuple(map_.evaluate([position])) == index


def test_many_positions_at_once() -> None:
    """A map takes arrays of indices, as the positions of a large array need it."""
    np = pytest.importorskip("numpy")
    shape = parse_array("bf16[8,1,1280,16384]{3,2,0,1:T(8,128)(2,1)}")
    index = tuple(np.random.default_rng(0).integers(0, size, 1000) for size in shape.static_bounds)
    assert (to_indexing_map(shape).evaluate(index)[0] == linear_index(shape, index)).all()


def test_the_text_of_a_tiled_layout() -> None:
    """The map is simplified: a tile moves its rows and columns together."""
    assert str(to_indexing_map(parse_array("f32[16,256]{1,0:T(8,128)}"))) == (
        "(d0, d1) -> ((d0 / 8) * 1024 + (d1 / 128) * 896 + d0 * 128 + d1), domain: d0 in [0, 15], d1 in [0, 255]"
    )


def test_shapes_without_memory() -> None:
    """An array without elements has an empty map, one without bounds none."""
    assert to_indexing_map(parse_array("f32[0,5]")).is_known_empty
    with pytest.raises(VerificationError, match="unbounded"):
        to_indexing_map(parse_array("f32[?,5]"))
