"""Composition of indexing maps and changes of their variables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

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
from shardy_py.indexing.simplification import simplify_once


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
    kept: list[tuple[Bound, ...]] = []
    for kind in VariableKind:
        bounds: list[Bound] = []
        for number, bound in enumerate(map_.bounds(kind)):
            variable = Variable(kind, number)
            if variable in leaving:
                continue
            numbers[variable] = Variable(kind, len(bounds))
            bounds.append(bound)
        kept.append(tuple(bounds))
    results = tuple(rewritten(result, numbers) for result in map_.results)
    constraints = [(rewritten(expression, numbers), interval) for expression, interval in map_.constraints]
    dims, ranges, runtimes = kept
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
    kept = []
    for expression, interval in map_.constraints:
        if variables_of(expression) & used:
            kept.append((expression, interval))
    needed = used.union(*(variables_of(expression) for expression, _ in kept))
    gone = [variable for variable in map_.variables if variable not in needed]
    if not gone and len(kept) == len(map_.constraints):
        return map_
    return without_variables(evolve(map_, constraints=tuple(kept)), gone, {})


def without_unused_dims(map_: IndexingMap) -> IndexingMap:
    """Return a map without the dimensions that neither results nor constraints use."""
    gone = [item for item in map_.variables if item.kind is VariableKind.DIM and item not in map_.used]
    return without_variables(map_, gone, {}) if gone else map_


def rescale_symbols(map_: IndexingMap) -> IndexingMap:
    """Return a map whose range variables count only the values that constraints on their remainders let through.

    Where ``s mod k`` has to be ``r``, ``s * k + r`` takes the place of ``s``.
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
