"""Rules derived from indexing maps, against loops that run over what a device holds."""

from __future__ import annotations

from itertools import product
from math import prod

import pytest

pytest.importorskip("numpy")
import numpy as np
from attrs import frozen
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from shardy_py.indexing import AffineMap, Binary, Constant, constant, dim
from shardy_py.indexing.canonical import add
from shardy_py.indexing.canonical import product as times
from shardy_py.indexing.expressions import evaluate
from shardy_py.sharding.derivation import PARALLEL, REDUCTION, rule_from_indexing_maps
from shardy_py.testing import Verdict, check_rule_numerically


@frozen
class Loops:
    """A nest of loops that adds products of operand elements to elements of one result."""

    sizes: tuple[int, ...]
    kinds: tuple[str, ...]
    maps: tuple[AffineMap, ...]
    shapes: tuple[tuple[int, ...], ...]

    @property
    def rule(self):
        """The derived rule."""
        return rule_from_indexing_maps(self.maps, self.shapes, num_results=1, iterator_types=self.kinds)

    def __call__(self, *operands, local):
        """Run the loops whose elements the device has all of, for the elements of the result that it makes."""
        shards = (*local.operands, *local.results)
        result = np.zeros(local.results[0].shape)
        held = [[first_indices(positions) for positions in shard.positions] for shard in shards]
        for point in product(*map(range, self.sizes)):
            places = [self.place(number, point, indices) for number, indices in enumerate(held)]
            if None not in places:
                result[places[-1]] += prod(array[place] for array, place in zip(operands, places, strict=False))
        return result

    def place(self, number, point, held):
        """Where a device has the element of a tensor that a point of the loops needs, or None."""
        expressions = zip(self.maps[number].results, held, strict=True)
        place = [
            indices.get(evaluate(expression, lambda loop: point[loop.number])) for expression, indices in expressions
        ]
        return None if None in place else tuple(place)


def first_indices(positions):
    """Return the first index of each position that a device has along a dimension."""
    return {int(positions[index]): index for index in reversed(range(len(positions)))}


@st.composite
def dimensions(draw, sizes):
    """Draw an expression over loops, and the size of a dimension that it fits."""
    single = draw(st.integers(0, len(sizes) - 1))
    other = draw(st.integers(0, len(sizes) - 1))
    size = sizes[single]
    kind = draw(
        st.sampled_from(["plain"] * 6 + ["dense", "part", "reverse", "shift", "stride", "window", "opaque", "zero"])
    )
    if kind == "dense" and single != other:
        return add((times(dim(single), constant(sizes[other])), dim(other))), size * sizes[other]
    if kind == "window" and single != other:
        return add((dim(single), dim(other))), size + sizes[other] - 1
    if kind == "part" and size == 4:
        return Binary(draw(st.sampled_from(("/", "mod"))), dim(single), Constant(2)), 2
    if kind == "reverse":
        return add((times(dim(single), constant(-1)), constant(size - 1))), size
    if kind == "shift":
        return add((dim(single), constant(2))), size + 2
    if kind == "stride":
        return times(dim(single), constant(2)), 2 * size
    if kind == "opaque":
        # The square of a sum of loops, cut to the size of its dimension.
        total, cut = add((dim(single), dim(other))), draw(st.sampled_from((2, 4)))
        return Binary("mod", Binary("*", total, total), Constant(cut)), cut
    if kind == "zero":
        return constant(0), draw(st.sampled_from((1, 2)))
    return dim(single), size


@st.composite
def loops(draw):
    """Draw a nest of loops over one or two operands; loops that the result lacks are reductions."""
    sizes = tuple(draw(st.lists(st.sampled_from((2, 3, 4)), min_size=1, max_size=3)))
    maps, shapes = [], []
    for _ in range(draw(st.integers(1, 2))):
        dims = draw(st.lists(dimensions(sizes), max_size=3))
        maps.append(AffineMap(len(sizes), tuple(expression for expression, _ in dims)))
        shapes.append(tuple(size for _, size in dims))
    projected_loops = [loop for loop in range(len(sizes)) if draw(st.booleans())]
    maps.append(AffineMap.of_dims(len(sizes), draw(st.permutations(projected_loops))))
    shapes.append(tuple(sizes[expression.number] for expression in maps[-1].results))
    kinds = tuple(PARALLEL if loop in projected_loops else REDUCTION for loop in range(len(sizes)))
    return Loops(sizes, kinds, tuple(maps), tuple(shapes))


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(loops())
def test_derived_rules_hold(nest):
    """No factor of a derived rule is wrong, whatever the maps."""
    rule = nest.rule
    assume(rule is not None and all(mapping for mapping in rule.operand_mappings))
    report = check_rule_numerically(rule, nest, nest.shapes[:-1], nest.shapes[-1:], trials=1)
    assert not report.wrong, str(report)
    assert any(item.verdict is not Verdict.UNCHECKED for item in report.factors)
