"""Simplification of indexing maps: constraints become bounds, bounds shorten expressions."""

from __future__ import annotations

from functools import lru_cache
from math import gcd

from attrs import evolve

from shardy_py.indexing.canonical import canonicalize
from shardy_py.indexing.expressions import Binary, Constant, Expression, Variable, VariableKind
from shardy_py.indexing.indexing_map import Bound, IndexingMap, Interval
from shardy_py.indexing.ranges import Ranges
from shardy_py.indexing.rewrite import Simplifier, unscaled

_MAX_ROUNDS = 32


def simplify(map_: IndexingMap, *, fold_points: bool = True) -> IndexingMap:
    """Return an indexing map with the same values on the same domain, in its simplest form.

    Args:
        map_: The map.
        fold_points: Whether an expression with only one possible value becomes that constant.
    """
    for _ in range(_MAX_ROUNDS):
        again = simplify_once(map_, fold_points=fold_points)
        if again == map_:
            break
        map_ = again
    return map_


# Passes simplify the same maps again and again, and the last round of each is the first of the next.
@lru_cache(maxsize=1 << 12)
def simplify_once(map_: IndexingMap, *, fold_points: bool = True) -> IndexingMap:
    """Return an indexing map after one round: constraints to a fixpoint, then the results."""
    if map_.is_undefined or map_.is_known_empty:
        return map_
    state = _Domain(map_)
    state.settle()
    if state.is_empty:
        return IndexingMap((), (Bound(Interval(0, -1)),))
    state.merge_remainders()
    simplifier = Simplifier(Ranges(state.bounds, state.constraints), fold_points=fold_points)
    results = tuple(simplifier.simplify(result) for result in map_.results)
    return evolve(state.applied(map_), results=results)


class _Domain:
    """The bounds of variables and the constraints of a map, as they get tighter."""

    def __init__(self, map_: IndexingMap) -> None:
        self.bounds: dict[Variable, Interval] = {name: bound.interval for name, bound in map_.variables.items()}
        self.constraints: dict[Expression, Interval] = {}
        for expression, interval in map_.constraints:
            self._constrain(self.constraints, canonicalize(expression), interval)

    @property
    def is_empty(self) -> bool:
        """True if no point is left."""
        return any(interval.is_empty for interval in (*self.bounds.values(), *self.constraints.values()))

    def settle(self) -> None:
        """Simplify constraints and turn them into bounds until nothing changes."""
        while not self.is_empty:
            before = (dict(self.bounds), self.constraints)
            self.constraints = self._tightened()
            if before == (self.bounds, self.constraints):
                return

    def _tightened(self) -> dict[Expression, Interval]:
        ranges = Ranges(dict(self.bounds))
        simplifier = Simplifier(ranges)
        kept: dict[Expression, Interval] = {}
        for expression, interval in self.constraints.items():
            expression, interval = unscaled(simplifier.simplify(expression), interval, ranges)
            if isinstance(expression, Variable):
                self.bounds[expression] = self.bounds[expression].meet(interval)
                continue
            possible = ranges.of(expression)
            if possible.meet(interval).is_empty:
                interval = Interval(0, -1)
            elif interval.contains(possible):
                continue
            self._constrain(kept, expression, interval)
        return kept

    def merge_remainders(self) -> None:
        """Merge constraints on remainders of one variable, and cut its bounds to the first and last hit."""
        merged: dict[Expression, tuple[int, int]] = {}
        for expression, interval in list(self.constraints.items()):
            if not (isinstance(expression, Binary) and expression.op == "mod" and interval.is_point):
                continue
            if not isinstance(expression.right, Constant) or expression.right.value <= 0:
                continue
            modulus, remainder = merged.get(expression.left, (1, 0))
            both = _both_remainders((modulus, remainder), (expression.right.value, interval.lower))
            del self.constraints[expression]
            if both is None:
                self.constraints[expression] = Interval(0, -1)
                continue
            merged[expression.left] = both
        for dividend, (modulus, remainder) in merged.items():
            self.constraints[Binary("mod", dividend, Constant(modulus))] = Interval(remainder, remainder)
            if isinstance(dividend, Variable):
                bound = self.bounds[dividend]
                first = bound.lower + (remainder - bound.lower) % modulus
                last = bound.upper - (bound.upper - remainder) % modulus
                self.bounds[dividend] = Interval(first, last)

    def applied(self, map_: IndexingMap) -> IndexingMap:
        """Return a map with these bounds and constraints."""
        if self.is_empty:
            return IndexingMap((), (Bound(Interval(0, -1)),))
        groups = [
            tuple(
                evolve(bound, interval=self.bounds[Variable(kind, number)])
                for number, bound in enumerate(map_.bounds(kind))
            )
            for kind in VariableKind
        ]
        return evolve(map_, dims=groups[0], ranges=groups[1], runtimes=groups[2], constraints=()).with_constraints(
            self.constraints.items()
        )

    @staticmethod
    def _constrain(constraints: dict[Expression, Interval], expression: Expression, interval: Interval) -> None:
        known = constraints.get(expression)
        constraints[expression] = interval if known is None else interval.meet(known)


def _both_remainders(one: tuple[int, int], other: tuple[int, int]) -> tuple[int, int] | None:
    """Return the modulus and the remainder of numbers that have both remainders, or None where there are none."""
    (modulus, remainder), (modulus2, remainder2) = one, other
    if not 0 <= remainder2 < modulus2:
        return None
    common = gcd(modulus, modulus2)
    if (remainder2 - remainder) % common:
        return None
    least = modulus // common * modulus2
    steps = (remainder2 - remainder) // common * pow(modulus // common, -1, modulus2 // common)
    return least, (remainder + steps * modulus) % least
