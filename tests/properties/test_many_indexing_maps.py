"""Simplification of many random indexing maps: values, a fixpoint, length."""

from __future__ import annotations

from random import Random

import numpy
import pytest

from shardy_py.indexing import (
    Binary,
    Bound,
    Constant,
    Expression,
    IndexingMap,
    Interval,
    Variable,
    VariableKind,
    simplify,
)
from shardy_py.indexing.canonical import canonicalize
from shardy_py.indexing.expressions import count_operators

COUNT, BATCH = 10_000, 1_000
SIZES = (1, 2, 3, 4, 6, 8, 12, 17)
NUMBERS = (1, 2, 3, 4, 5, 6, 8, 12, 16, 32, 64)


def expression(random: Random, variables: list[Variable], depth: int) -> Expression:
    """Draw an expression: sums, products, digits and extrema of variables and constants."""
    if not depth or random.random() < 0.2:
        return Constant(random.randint(-20, 40)) if random.random() < 0.2 else random.choice(variables)
    inner = expression(random, variables, depth - 1)
    kind = random.choice(("+", "+", "-", "*", "/", "/", "mod", "mod", "ceildiv", "min", "max", "/-"))
    if kind in ("+", "min", "max"):
        return Binary(kind, inner, expression(random, variables, depth - 1))  # type: ignore[arg-type]
    if kind == "-":
        return inner - expression(random, variables, depth - 1)
    if kind == "/-":
        return inner // random.choice((-1, -3))
    return Binary(kind, inner, Constant(random.choice(NUMBERS)))  # type: ignore[arg-type]


def draw(random: Random) -> IndexingMap:
    """Draw a map over few points, with constraints."""
    groups = []
    for count in (random.randint(1, 2), random.randint(0, 1)):
        lows = [random.choice((0, 0, 0, 1, -3)) for _ in range(count)]
        groups.append(tuple(Bound(Interval(low, low + random.choice(SIZES) - 1)) for low in lows))
    variables = [
        Variable(kind, n) for kind, group in zip(VariableKind, groups, strict=False) for n in range(len(group))
    ]
    results = [expression(random, variables, random.randint(1, 4)) for _ in range(random.randint(1, 2))]
    constraints = []
    for _ in range(random.choice((0, 0, 1, 2))):
        low = random.randint(-4, 8)
        constraints.append((expression(random, variables, 2), Interval(low, low + random.randint(0, 40))))
    if random.random() < 0.3:
        modulus = random.choice((2, 3, 4))
        rest = random.randrange(modulus)
        constraints.append((random.choice(variables) % modulus, Interval(rest, rest)))
    return IndexingMap(tuple(results), *groups).with_constraints(constraints)


def problem(map_: IndexingMap) -> str:
    """Return what is wrong with the simplified map, or ""."""
    simple = simplify(map_)
    spans = [numpy.arange(bound.interval.lower, bound.interval.upper + 1) for bound in map_.variables.values()]
    points = [axis.ravel() for axis in numpy.meshgrid(*spans, indexing="ij")]
    groups = points[: len(map_.dims)], points[len(map_.dims) :]
    inside = numpy.broadcast_to(map_.holds(*groups), points[0].shape)
    if simple.is_known_empty:
        return "the domain is not empty" if inside.any() else ""
    if (numpy.broadcast_to(simple.holds(*groups), points[0].shape) != inside).any():
        return "another domain"
    for ours, original in zip(simple.evaluate(*groups), map_.evaluate(*groups), strict=True):
        if (numpy.where(inside, ours, 0) != numpy.where(inside, original, 0)).any():
            return "other values"
    if simplify(simple) != simple:
        return "simplifying again changes it"
    lengths = zip(map(count_operators, simple.results), map_.results, strict=True)
    is_longer = any(length > count_operators(canonicalize(original)) for length, original in lengths)
    return "longer than the canonical form" if is_longer else ""


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(COUNT // BATCH))
def test_simplifying_many_maps(seed: int) -> None:
    """A simplified map has the same values on the same domain, is a fixpoint, and no longer than the canonical form.

    The canonical form may have more operators than the text: products are distributed over sums, and ``ceildiv`` is
    written as a quotient.
    """
    random = Random(seed)
    maps = [draw(random) for _ in range(BATCH)]
    actual = [(reason, str(map_)) for map_ in maps if (reason := problem(map_))]
    assert actual == []
