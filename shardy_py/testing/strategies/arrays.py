"""Hypothesis strategies for shapes and layouts."""

from __future__ import annotations

from typing import Any

from attrs import evolve
from hypothesis import strategies as st

from shardy_py.layout.shape import AnyShape, Bounded, OpaqueShape, Shape, TokenShape, TupleShape
from shardy_py.layout.values import COMBINE, Layout, MemorySpace, Split, Tile
from shardy_py.support.element_types import ELEMENT_TYPES


def tiles(*, max_rank: int = 4, max_size: int = 4) -> st.SearchStrategy[Tile]:
    """Return tiles, some of which combine dimensions."""
    size = st.integers(1, max_size)
    return st.builds(
        lambda sizes, last: Tile((*sizes, last)),
        st.lists(st.one_of(size, st.just(COMBINE)), max_size=max_rank - 1),
        size,
    )


@st.composite
def layouts(draw: Any, rank: int) -> Layout:
    """Return layouts of a rank: any order, up to three levels of tiles, nested or combining."""
    return Layout(
        tuple(draw(st.permutations(range(rank)))),
        tuple(draw(st.lists(tiles(), max_size=3))),
        tail_padding=draw(st.sampled_from((1, 1, 2, 16))),
        element_bits=draw(st.sampled_from((0, 0, 4, 8, 32))),
        memory_space=MemorySpace(draw(st.sampled_from((0, 0, 1, 2, 5)))),
    )


@st.composite
def array_shapes(draw: Any, *, max_rank: int = 4, max_size: int = 7) -> Shape:
    """Return static arrays that are small enough to look at every element."""
    sizes = tuple(draw(st.lists(st.integers(0, max_size), max_size=max_rank)))
    return Shape(draw(st.sampled_from(ELEMENT_TYPES)), sizes, draw(layouts(len(sizes))))


@st.composite
def any_shapes(draw: Any) -> AnyShape:
    """Return shapes of every kind, for their text: dynamic sizes, splits, tuples, tokens, opaque values."""
    leaves = st.one_of(_dynamic_arrays(), st.just(TokenShape()), st.just(OpaqueShape()))
    tuples = st.recursive(leaves, lambda inner: st.lists(inner, max_size=7).map(_tuple), max_leaves=9)
    shape: AnyShape = draw(tuples)
    return shape


@st.composite
def _dynamic_arrays(draw: Any) -> Shape:
    number = st.integers(0, 1000)
    kinds = (number, number.map(Bounded), st.none())
    sizes = tuple(draw(st.lists(st.one_of(kinds), max_size=4)))
    layout = draw(layouts(len(sizes)))
    shape = Shape(draw(st.sampled_from(ELEMENT_TYPES)), sizes, layout)
    physical = [shape.bounds[number] or 0 for number in layout.major_to_minor]
    wide = [number for number, size in enumerate(physical) if size > 1]
    if not wide or draw(st.booleans()):
        return shape
    numbers = draw(st.lists(st.sampled_from(wide), max_size=2, unique=True))
    cuts = [st.sets(st.integers(1, physical[number] - 1), min_size=1, max_size=3) for number in numbers]
    splits = (Split(number, tuple(sorted(draw(cut)))) for number, cut in zip(numbers, cuts, strict=True))
    return shape.with_layout(evolve(layout, splits=tuple(splits)))


def _tuple(elements: list[AnyShape]) -> TupleShape:
    return TupleShape(tuple(elements))
