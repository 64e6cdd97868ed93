"""Laws of indexing maps: text round trips, simplification and composition against values."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import numpy
from hypothesis import given, settings
from hypothesis import strategies as st

from shardy_py.indexing import (
    Binary,
    Bound,
    Constant,
    Expression,
    IndexingMap,
    Interval,
    Variable,
    VariableKind,
    compose,
    rescale_symbols,
    simplify,
    without_unused_symbols,
)
from shardy_py.indexing.canonical import canonicalize
from shardy_py.indexing.expressions import count_operators

NUMBERS = st.sampled_from([1, 2, 3, 4, 5, 6, 8, 12, 16, 32, 64])


def expressions(variables: Sequence[Variable]) -> st.SearchStrategy[Expression]:
    """Expressions over some variables."""
    leaves: st.SearchStrategy[Expression] = st.builds(Constant, st.integers(-20, 40))
    if variables:
        leaves = st.one_of(st.sampled_from(variables), st.sampled_from(variables), leaves)

    def grown(inner: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
        scaled = st.builds(Binary, st.sampled_from(["*", "/", "mod", "ceildiv"]), inner, st.builds(Constant, NUMBERS))
        negative = st.builds(Binary, st.sampled_from(["*", "/"]), inner, st.builds(Constant, st.sampled_from([-1, -3])))
        return st.one_of(
            scaled,
            scaled,
            negative,
            st.builds(Binary, st.just("+"), inner, inner),
            st.builds(Binary, st.sampled_from(["min", "max"]), inner, inner),
        )

    return st.recursive(leaves, grown, max_leaves=7)


@st.composite
def maps(draw: st.DrawFn, num_dims: int | None = None) -> IndexingMap:
    """Maps over few points, with constraints."""
    counts = [draw(st.integers(1, 2)) if num_dims is None else num_dims, draw(st.integers(0, 2)), 0]
    groups = []
    for count in counts:
        sizes = [draw(st.sampled_from([1, 2, 3, 6, 8, 12, 17])) for _ in range(count)]
        lows = [draw(st.sampled_from([0, 0, 0, 1, -3])) for _ in range(count)]
        groups.append(tuple(Bound(Interval(low, low + size - 1)) for low, size in zip(lows, sizes, strict=True)))
    variables = [Variable(kind, n) for kind, group in zip(VariableKind, groups, strict=True) for n in range(len(group))]
    results = draw(st.lists(expressions(variables), min_size=1, max_size=2))
    constraints = draw(st.lists(st.tuples(expressions(variables), st.integers(-4, 8), st.integers(0, 40)), max_size=2))
    remainders = draw(
        st.lists(st.tuples(st.sampled_from(variables), st.sampled_from([2, 3, 4]), st.integers(0, 1)), max_size=2)
    )
    return IndexingMap(tuple(results), *groups).with_constraints(
        [(expression, Interval(low, low + size)) for expression, low, size in constraints]
        + [(Binary("mod", name, Constant(modulus)), Interval(rest, rest)) for name, modulus, rest in remainders]
    )


def points(map_: IndexingMap) -> list[numpy.ndarray]:
    """Every point within the bounds, as one array per variable."""
    sizes = [range(bound.interval.lower, bound.interval.upper + 1) for bound in map_.variables.values()]
    return list(numpy.array(list(itertools.product(*sizes)), dtype=numpy.int64).T) if sizes else []


def split(map_: IndexingMap, values: Sequence[numpy.ndarray]) -> Iterator[Sequence[numpy.ndarray]]:
    """The values of dimensions, of range variables and of run-time variables."""
    start = 0
    for kind in VariableKind:
        end = start + len(map_.bounds(kind))
        yield values[start:end]
        start = end


def table(map_: IndexingMap, values: Sequence[numpy.ndarray]) -> dict[tuple[int, ...], tuple[int, ...]]:
    """The results at those points that lie in the domain."""
    if map_.is_known_empty:
        return {}
    groups = list(split(map_, values))
    count = len(values[0]) if values else 1
    inside = numpy.broadcast_to(map_.holds(*groups), (count,))
    results = [numpy.broadcast_to(result, (count,)) for result in map_.evaluate(*groups)]
    inputs, outputs = (numpy.array(arrays, dtype=numpy.int64).reshape(-1, count).T for arrays in (values, results))
    return dict(zip(map(tuple, inputs[inside].tolist()), map(tuple, outputs[inside].tolist()), strict=True))


@given(maps())
def test_text_gives_the_map_back(map_: IndexingMap) -> None:
    """A map printed in either spelling and parsed again is the same map, and prints the same."""
    if map_.is_known_empty:
        assert IndexingMap.parse(str(map_)).is_known_empty
        return
    for spelling in ("/", "floordiv"):
        text = map_.print(spelling=spelling)
        again = IndexingMap.parse(text)
        assert again.print(spelling=spelling) == text
        values = points(map_)
        assert table(again, values) == table(map_, values)


@given(maps())
@settings(max_examples=80, deadline=None)
def test_simplifying_keeps_values(map_: IndexingMap) -> None:
    """A simplified map has the same results at the same points; simplifying it again changes nothing.

    Every result has at most as many operators as the canonical form of the given one.
    """
    simple = simplify(map_)
    values = points(map_)
    assert table(simple, values) == table(map_, values)
    assert simplify(simple) == simple
    if not simple.is_known_empty:
        for before, after in zip(map_.results, simple.results, strict=True):
            assert count_operators(after) <= count_operators(canonicalize(before))


@given(st.data())
def test_composing_applies_one_after_the_other(data: st.DataObject) -> None:
    """The composition's results are the second map's at the first's, wherever both are in their domains."""
    first = data.draw(maps())
    second = data.draw(maps(num_dims=len(first.results)))
    composed = compose(first, second)
    dims, ranges = len(first.dims), len(second.ranges)
    bounds = [range(bound.interval.lower, bound.interval.upper + 1) for bound in second.ranges]
    steps = {
        point[:dims] + range_point + point[dims:]: results + range_point
        for point, results in table(first, points(first)).items()
        for range_point in itertools.product(*bounds)
    }
    after = table(second, list(numpy.array(list(set(steps.values())), dtype=numpy.int64).T)) if steps else {}
    expected = {point: after[values] for point, values in steps.items() if values in after}
    sizes = [*first.dims, *second.ranges, *first.ranges]
    flat_map = IndexingMap((), tuple(first.dims), (*second.ranges, *first.ranges))
    assert len(sizes) == dims + ranges + len(first.ranges)
    assert table(composed, points(flat_map)) == expected


@given(maps())
def test_rescaled_symbols_reach_the_same_results(map_: IndexingMap) -> None:
    """Every result that a map has is one of the map with rescaled symbols, and the other way round."""
    rescaled = rescale_symbols(map_)
    before = sorted(table(map_, points(map_)).values())
    if rescaled.is_known_empty:
        assert not before
        return
    assert sorted(table(rescaled, points(rescaled)).values()) == before


@given(maps())
def test_dropping_unused_symbols_keeps_results(map_: IndexingMap) -> None:
    """Without the symbols that no result needs, every result is still reached."""
    short = without_unused_symbols(map_)
    before = table(map_, points(map_))
    if short.is_known_empty:
        assert not before
        return
    assert set(before.values()) <= set(table(short, points(short)).values())
