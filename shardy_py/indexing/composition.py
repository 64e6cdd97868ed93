"""Compose indexing maps, and simplify them: constraints become bounds, and bounds shorten expressions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from math import gcd

from attrs import evolve

from shardy_py.indexing.canonical import canonicalize
from shardy_py.indexing.expressions import (
    Binary,
    Constant,
    Expression,
    Variable,
    VariableKind,
    rewritten,
    variables_of,
)
from shardy_py.indexing.indexing_map import Bound, IndexingMap, Interval
from shardy_py.indexing.ranges import Ranges
from shardy_py.indexing.rewrite import Simplifier, unscaled


def compose(first: IndexingMap, second: IndexingMap) -> IndexingMap:
    """Return the map that applies one map, then another to its results, simplified.

    Args:
        first: The map that is applied first; it has one result per dimension of the second.
        second: The map of the results. Its range and run-time variables come before those of the first.

    Returns:
        The map from the first's dimensions to the second's results. Each result of the first has to lie in the
        bounds of the second's dimension.
    """
    if first.is_undefined or second.is_undefined:
        return IndexingMap.undefined()
    if first.is_known_empty or second.is_known_empty:
        return IndexingMap((), (Bound(Interval(0, -1)),))
    moved = {
        Variable(kind, number): Variable(kind, number + len(second.bounds(kind)))
        for kind in (VariableKind.RANGE, VariableKind.RUNTIME)
        for number in range(len(first.bounds(kind)))
    }
    inner = [rewritten(result, moved) for result in first.results]
    values: dict[Variable, Expression] = {
        Variable(VariableKind.DIM, number): result for number, result in enumerate(inner)
    }
    constraints = [(rewritten(expression, moved), interval) for expression, interval in first.constraints]
    constraints += [(rewritten(expression, values), interval) for expression, interval in second.constraints]
    constraints += [(result, bound.interval) for result, bound in zip(inner, second.dims, strict=True)]
    return simplify_once(
        IndexingMap(
            tuple(canonicalize(rewritten(result, values)) for result in second.results),
            first.dims,
            _unnamed_clashes(second.ranges, first.ranges),
            _unnamed_clashes(second.runtimes, first.runtimes),
        ).with_constraints((canonicalize(expression), interval) for expression, interval in constraints)
    )


def results_at(map_: IndexingMap, values: Iterable[Expression]) -> tuple[Expression, ...]:
    """Return the results of a map for expressions in the place of its variables: dimensions, ranges, run-time values.

    The domain of the map is not looked at.
    """
    by_variable = dict(zip(map_.variables, values, strict=False))
    return tuple(canonicalize(rewritten(result, by_variable)) for result in map_.results)


def _unnamed_clashes(second: tuple[Bound, ...], first: tuple[Bound, ...]) -> tuple[Bound, ...]:
    """Return the variables of both, without names that would occur twice."""
    taken = {bound.name for bound in second if bound.name}
    return second + tuple(evolve(bound, name="") if bound.name in taken else bound for bound in first)


def without_variables(
    map_: IndexingMap, gone: Iterable[Variable], values: Mapping[Variable, Expression]
) -> IndexingMap:
    """Return a map without some variables.

    Args:
        map_: The map.
        gone: The variables that go.
        values: The replacements of those of them that expressions use.
    """
    leaving = set(gone)
    numbers: dict[Variable, Expression] = dict(values)
    bounds_by_kind: list[tuple[Bound, ...]] = []
    for kind in VariableKind:
        bounds: list[Bound] = []
        for number, bound in enumerate(map_.bounds(kind)):
            variable = Variable(kind, number)
            if variable in leaving:
                continue
            numbers[variable] = Variable(kind, len(bounds))
            bounds.append(bound)
        bounds_by_kind.append(tuple(bounds))
    results = tuple(rewritten(result, numbers) for result in map_.results)
    constraints = [(rewritten(expression, numbers), interval) for expression, interval in map_.constraints]
    dims, ranges, runtimes = bounds_by_kind
    return IndexingMap(results, dims, ranges, runtimes).with_constraints(constraints)


def without_unused_symbols(map_: IndexingMap) -> IndexingMap:
    """Return a map without the range and run-time variables that no result needs.

    A constraint goes with them if it is on such variables alone; one that mentions a used variable stays, and with it
    the variables that it mentions.
    """
    if map_.is_undefined or map_.is_known_empty:
        return map_
    used = set().union(*(variables_of(result) for result in map_.results))
    used |= {variable for variable in map_.variables if variable.kind is VariableKind.DIM}
    used_bounds = []
    for expression, interval in map_.constraints:
        if variables_of(expression) & used:
            used_bounds.append((expression, interval))
    needed = used.union(*(variables_of(expression) for expression, _ in used_bounds))
    gone = [variable for variable in map_.variables if variable not in needed]
    if not gone and len(used_bounds) == len(map_.constraints):
        return map_
    return without_variables(evolve(map_, constraints=tuple(used_bounds)), gone, {})


def without_unused_dims(map_: IndexingMap) -> IndexingMap:
    """Return a map without the dimensions that neither results nor constraints use."""
    gone = [item for item in map_.variables if item.kind is VariableKind.DIM and item not in map_.used]
    return without_variables(map_, gone, {}) if gone else map_


def rescale_symbols(map_: IndexingMap) -> IndexingMap:
    """Return a map whose range variables count only the values that constraints on their remainders let through.

    Where ``s mod k`` has to be ``r``, ``s * k + r`` replaces ``s``.
    """
    values: dict[Variable, Expression] = {}
    ranges = list(map_.ranges)
    constraints = []
    for expression, interval in map_.constraints:
        step = _step(expression, interval)
        if step is None or step[0] in values:
            constraints.append((expression, interval))
            continue
        variable, modulus, remainder = step
        bound = ranges[variable.number]
        low = -((remainder - bound.interval.lower) // modulus)
        high = (bound.interval.upper - remainder) // modulus
        ranges[variable.number] = evolve(bound, interval=Interval(low, high))
        values[variable] = Binary("+", Binary("*", variable, Constant(modulus)), Constant(remainder))
    if not values:
        return map_
    return evolve(
        map_,
        results=tuple(canonicalize(rewritten(result, values)) for result in map_.results),
        ranges=tuple(ranges),
    ).with_constraints((canonicalize(rewritten(expression, values)), interval) for expression, interval in constraints)


def _step(expression: Expression, interval: Interval) -> tuple[Variable, int, int] | None:
    if not (isinstance(expression, Binary) and expression.op == "mod" and interval.is_point):
        return None
    variable, modulus = expression.left, expression.right
    if not (isinstance(variable, Variable) and variable.kind is VariableKind.RANGE and isinstance(modulus, Constant)):
        return None
    return (variable, modulus.value, interval.lower) if 0 <= interval.lower < modulus.value else None


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
        constraints: dict[Expression, Interval] = {}
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
            self._constrain(constraints, expression, interval)
        return constraints

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


def _both_remainders(first: tuple[int, int], second: tuple[int, int]) -> tuple[int, int] | None:
    """Return the modulus and the remainder of numbers that have both remainders, or None where there are none."""
    (modulus, remainder), (modulus2, remainder2) = first, second
    if not 0 <= remainder2 < modulus2:
        return None
    common = gcd(modulus, modulus2)
    if (remainder2 - remainder) % common:
        return None
    least = modulus // common * modulus2
    steps = (remainder2 - remainder) // common * pow(modulus // common, -1, modulus2 // common)
    return least, (remainder + steps * modulus) % least
