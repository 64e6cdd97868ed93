"""Positions in memory, images, strides and indexing maps: cases worked out by hand and with numpy."""

from __future__ import annotations

from itertools import product

import pytest

from shardy_py.errors import VerificationError
from shardy_py.layout import (
    expanded_sizes,
    inverse_indexing_map,
    linear_index,
    multi_index,
    padded_elements,
    parse_array,
    physical_strides,
    strides,
    to_indexing_map,
)

NESTED = "bf16[8,1,1280,16384]{3,2,0,1:T(8,128)(2,1)}"
COMBINED = "f32[2,7,8,11,10]{4,3,2,1,0:T(*,*,2,*,3)}"


@pytest.mark.parametrize(
    ("text", "index", "position"),
    [
        ("f32[3,5]{1,0:T(2,2)}", (2, 3), 17),
        ("f32[8,8]{1,0:T(2,4)(2,1,1,1)}", (6, 5), 51),
        (COMBINED, (1, 6, 7, 10, 9), 12430),
        (COMBINED, (1, 2, 3, 4, 5), 8307),
        (NESTED, (0, 0, 1, 0), 1),
        (NESTED, (0, 0, 2, 0), 256),
        (NESTED, (3, 0, 5, 129), 62916099),
        (NESTED, (7, 0, 1279, 16383), 167772159),
        ("bf16[2048]{0:T(1024)(128)(2,1)}", (128,), 1),
        ("bf16[2048]{0:T(1024)(128)(2,1)}", (1,), 2),
        ("bf16[2048]{0:T(1024)(128)(2,1)}", (1500,), 1465),
        ("f32[8]{0:T(2,2)}", (5,), 9),
        ("u32[]{:T(128)}", (), 0),
        ("s4[64,128]{1,0:T(64,128)(8,1)E(4)}", (9, 1), 1033),
        ("f32[6,4,5]{0,2,1:T(2,3)}", (5, 3, 4), 140),
        ("f32[]", (), 0),
        ("f32[<=4,3]{0,1}", (3, 2), 11),
    ],
)
def test_linear_index(text: str, index: tuple[int, ...], position: int) -> None:
    """Each element has its position, and there lies this element."""
    shape = parse_array(text)
    assert linear_index(shape, index) == position
    assert multi_index(shape, position) == index


def test_combining_is_reshaping() -> None:
    """A tile that combines dimensions lays an array out as the merged array with the tile that is left."""
    merged = parse_array("f32[112,110]{1,0:T(2,3)}")
    index = (1, 3, 7, 2, 9)
    row, column = (1 * 7 + 3) * 8 + 7, 2 * 10 + 9
    assert linear_index(parse_array(COMBINED), index) == linear_index(merged, (row, column))


def test_expanded_sizes() -> None:
    """Tiling again applies to what the tile before left, across its tiles, too."""
    shape = parse_array("f32[8,8]{1,0:T(2,4)(2,1,1,1)}")
    assert expanded_sizes(shape) == (2, 2, 2, 4, 2, 1, 1, 1)
    assert physical_strides(shape) == (32, 16, 8, 2, 1, 1, 1, 1)


def test_strides_are_those_of_the_order() -> None:
    """Without tiles every dimension has one stride; with tiles none has."""
    assert strides(parse_array("f32[2,3,4]")) == (12, 4, 1)
    assert strides(parse_array("f32[2,3,4]{0,1,2}")) == (1, 2, 6)
    with pytest.raises(VerificationError, match="no constant strides"):
        strides(parse_array("f32[4]{0:T(2)}"))


@pytest.mark.parametrize(
    ("text", "index", "reason"),
    [
        ("f32[3,5]", (3, 0), "dimension 0 .* size 3"),
        ("f32[3,5]", (0, -1), "dimension 1"),
        ("f32[3,5]", (0,), "1 numbers"),
        ("f32[0,5]", (0, 0), "dimension 0"),
        ("f32[?,5]", (0, 0), "unbounded"),
    ],
)
def test_an_index_outside_is_refused(text: str, index: tuple[int, ...], reason: str) -> None:
    """An index has one number per dimension, each inside it, and memory needs bounds."""
    with pytest.raises(VerificationError, match=reason):
        linear_index(parse_array(text), index)


def test_a_position_outside_is_refused() -> None:
    """A position is one of those the array takes; those of padding hold nothing."""
    shape = parse_array("f32[10]{0:L(16)}")
    assert multi_index(shape, 12) is None
    with pytest.raises(VerificationError, match="takes 16"):
        multi_index(shape, 16)


def test_images() -> None:
    """The image of an array is its elements in the order of memory."""
    np = pytest.importorskip("numpy")
    from shardy_py.layout import from_image, image, padding_mask

    shape = parse_array("f32[3,5]{1,0:T(2,2)}")
    gap = -1
    buffer = image(np.arange(15).reshape(3, 5), shape, fill=gap)
    assert buffer.tolist() == [
        0,
        1,
        5,
        6,
        2,
        3,
        7,
        8,
        4,
        gap,
        9,
        gap,
        10,
        11,
        gap,
        gap,
        12,
        13,
        gap,
        gap,
        14,
        *[gap] * 3,
    ]
    assert padding_mask(shape).sum() == 9
    letters = np.array([["a", "b", "c"], ["d", "e", "f"]])
    assert "".join(image(letters, parse_array("f32[2,3]{0,1}"))) == "adbecf"
    assert "".join(image(letters, parse_array("f32[2,3]{1,0}"))) == "abcdef"
    with pytest.raises(VerificationError, match="is not an image"):
        from_image(buffer[1:], shape)
    with pytest.raises(VerificationError, match="is no f32"):
        image(np.zeros((5, 3)), shape)


def test_many_indices_at_once() -> None:
    """Arrays of indices give arrays of positions."""
    np = pytest.importorskip("numpy")
    rows, columns = np.ogrid[0:4, 0:8]
    positions = linear_index(parse_array("f32[4,8]{1,0:T(2,4)(2,1)}"), (rows, columns))
    even = [*range(0, 8, 2), *range(8, 16, 2)]
    assert positions.tolist() == [even, [at + 1 for at in even], [at + 16 for at in even], [at + 17 for at in even]]
    with pytest.raises(VerificationError, match="dimension 0"):
        linear_index(parse_array("f32[3,8]"), (rows, columns))


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
