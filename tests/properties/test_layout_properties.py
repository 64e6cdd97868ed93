"""Laws of layouts, for random shapes, orders, nested and combining tiles."""

from __future__ import annotations

import json
import subprocess
import sys
from itertools import product
from math import prod

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from shardy_py.layout import (
    POLICIES,
    Shape,
    array_size,
    expanded_sizes,
    linear_index,
    multi_index,
    padded_bytes,
    padded_elements,
    parse_shape,
    shard_shape,
)
from shardy_py.testing.strategies import any_shapes, array_shapes

PEER = """
import json, sys
import jaxlib._hlo as hlo
answers = []
for text in json.load(sys.stdin):
    shape = hlo.Shape(text)
    leaves, known = [shape], []
    while leaves:
        leaf = leaves.pop(0)
        if leaf.is_tuple():
            leaves = list(leaf.tuple_shapes()) + leaves
        elif leaf.is_array():
            layout = leaf.layout()
            known.append([list(layout.minor_to_major()), [list(tile) for tile in layout.tiling()]])
    answers.append([str(shape), known])
json.dump(answers, sys.stdout)
"""


def small(shape: Shape) -> bool:
    """Return whether all places of a shape can be looked at."""
    return padded_elements(shape) <= 4000


@settings(max_examples=60, deadline=None)
@given(array_shapes().filter(small))
def test_linear_index_is_a_bijection(shape: Shape) -> None:
    """Every element has a place of its own, and every other place is padding."""
    places = {linear_index(shape, index): index for index in product(*map(range, shape.static_bounds))}
    assert len(places) == prod(shape.static_bounds)
    assert [multi_index(shape, place) for place in range(padded_elements(shape))] == [
        places.get(place) for place in range(padded_elements(shape))
    ]


@settings(max_examples=60, deadline=None)
@given(array_shapes().filter(small))
def test_tiling_is_padding_splitting_and_moving(shape: Shape) -> None:
    """The image is what numpy makes by merging, padding, splitting and transposing, level by level."""
    np = pytest.importorskip("numpy")
    from shardy_py.layout import image

    array = np.arange(1, prod(shape.static_bounds) + 1).reshape(shape.static_bounds)
    expected = array.transpose(shape.layout.major_to_minor)
    for tile in shape.layout.tiles:
        expected = expected.reshape((1,) * (len(tile.sizes) - expected.ndim) + expected.shape)
        outer = expected.ndim - len(tile.sizes)
        sizes, merged = list(expected.shape[:outer]), 1
        for size, step in zip(expected.shape[outer:], tile.sizes, strict=True):
            merged *= size
            if step is not None:
                sizes.append(merged)
                merged = 1
        expected = expected.reshape(sizes)
        steps = [step for step in tile.sizes if step is not None]
        expected = np.pad(
            expected, [(0, 0)] * outer + [(0, -size % step) for size, step in zip(sizes[outer:], steps, strict=True)]
        )
        split = [*expected.shape[:outer]]
        for size, step in zip(expected.shape[outer:], steps, strict=True):
            split += [size // step, step]
        counts = range(outer, len(split), 2)
        expected = expected.reshape(split).transpose([*range(outer), *counts, *(at + 1 for at in counts)])
    flat = expected.reshape(-1)
    assert image(array, shape).tolist() == [*flat.tolist(), *[0] * (padded_elements(shape) - flat.size)]


@settings(max_examples=60, deadline=None)
@given(array_shapes().filter(small))
def test_image_round_trips(shape: Shape) -> None:
    """An array comes back from its image, and exactly the padding holds the fill value."""
    np = pytest.importorskip("numpy")
    from shardy_py.layout import from_image, image, padding_mask

    array = np.arange(prod(shape.static_bounds)).reshape(shape.static_bounds)
    buffer = image(array, shape, fill=-1)
    assert (from_image(buffer, shape) == array).all()
    assert ((buffer == -1) == padding_mask(shape)).all()


@settings(max_examples=50, deadline=None)
@given(array_shapes())
def test_sizes(shape: Shape) -> None:
    """The exact count is the product of the expanded sizes, padded at the tail; XLA's is never larger."""
    count = prod(expanded_sizes(shape))
    assert padded_elements(shape) >= max(count, prod(shape.static_bounds))
    assert padded_elements(shape) % shape.layout.tail_padding == 0
    assert array_size(shape) <= padded_bytes(shape)


@settings(max_examples=80, deadline=None)
@given(any_shapes())
def test_text_round_trips(shape: object) -> None:
    """The text of a shape is read back as the same shape."""
    assert parse_shape(str(shape)) == shape


@given(array_shapes(), st.data())
def test_shards_keep_the_layout(shape: Shape, data: st.DataObject) -> None:
    """A shard has the layout of the whole and the smallest sizes that cover it."""
    counts = data.draw(st.tuples(*[st.integers(1, 9)] * shape.rank))
    shard = shard_shape(shape, counts)
    assert shard.layout == shape.layout
    for bound, part, count in zip(shape.static_bounds, shard.static_bounds, counts, strict=True):
        assert part * count >= bound > (part - 1) * count or bound == part == 0


@given(array_shapes(max_size=300), st.sampled_from(sorted(POLICIES)))
def test_policies(shape: Shape, name: str) -> None:
    """A policy looks at type and sizes only, keeps the memory space, and chooses the same again."""
    chosen = shape.with_layout(POLICIES[name].choose(shape))
    assert chosen.layout.memory_space == shape.layout.memory_space
    assert POLICIES[name].choose(chosen) == chosen.layout
    assert padded_bytes(chosen) == array_size(chosen)


@settings(max_examples=3, deadline=None, phases=[Phase.generate])
@given(st.lists(any_shapes(), min_size=60, max_size=60))
def test_agrees_with_xla(shapes: list[object]) -> None:
    """XLA reads our text as the same shape and prints the same text."""
    pytest.importorskip("jaxlib", reason="XLA's own parser is in jaxlib")
    from shardy_py.layout import arrays

    texts = [str(shape) for shape in shapes]
    done = subprocess.run([sys.executable, "-c", PEER], input=json.dumps(texts), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    answers = json.loads(done.stdout)
    assert [text for text, _ in answers] == texts
    for shape, (_, known) in zip(shapes, answers, strict=True):
        ours = [array.layout for array in arrays(shape)]  # type: ignore[arg-type]
        assert [list(layout.minor_to_major) for layout in ours] == [numbers for numbers, _ in known]
        assert [len(layout.tiles) for layout in ours] == [len(actual) for _, actual in known]
