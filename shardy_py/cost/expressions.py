"""Costs of programs with unknown sizes: polynomials in these sizes.

Each quantity is counted at some sizes, and the polynomial through these points is checked at others. So nothing of the
estimator has to know of unknown sizes, and a quantity that is no polynomial shows as none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from math import comb, prod
from typing import Any

from attrs import evolve, field

from shardy_py.api.keywords import keywords
from shardy_py.api.propagate import propagate
from shardy_py.api.result import Result
from shardy_py.cost.estimates import Cost
from shardy_py.cost.result_cost import arguments_of_run
from shardy_py.cost.unknown_sizes import unknown_sizes
from shardy_py.errors import Diagnostic, ShardyError, UnsupportedError
from shardy_py.values import define, frozen

QUANTITIES = (
    "communication_bytes",
    "flops",
    "transcendentals",
    "total_flops",
    "memory_traffic_bytes",
    "argument_bytes",
    "result_bytes",
    "peak_bytes",
)
"""The quantities that do not depend on a machine, by the names of the fields of `Cost`."""
_DEGREES = (2, 3)
_MOST_POINTS = 40
_LARGE = 64
"""The least size by the number of devices: from there on the largest of several values, such as a peak, is one."""
_TOLERANCE = 1e-9

Powers = tuple[int, ...]
Point = tuple[int | Fraction, ...]


@frozen
class Polynomial:
    """A polynomial in unknown sizes.

    >>> str(Polynomial(("n", "m"), {(0, 0): Fraction(8), (1, 2): Fraction(3)}))
    '3*n*m^2 + 8'

    Args:
        names: The sizes.
        terms: The coefficient of each product of powers.
    """

    names: tuple[str, ...]
    terms: Mapping[Powers, Fraction]

    def at(self, sizes: Sequence[float | Fraction]) -> float:
        """Return the value at some sizes."""
        return float(sum(coefficient * _monomial(sizes, powers) for powers, coefficient in self.terms.items()))

    def __str__(self) -> str:
        order = sorted(self.terms, key=lambda powers: (-sum(powers), [-power for power in powers]))
        return " + ".join(map(self._term, order)).replace("+ -", "- ") or "0"

    def _term(self, powers: Powers) -> str:
        powered = zip(self.names, powers, strict=True)
        factors = [name if power == 1 else f"{name}^{power}" for name, power in powered if power]
        coefficient = self.terms[powers]
        shown = str(coefficient) if coefficient.denominator == 1 else f"{float(coefficient):.6g}"
        return "*".join(factors if factors and coefficient == 1 else [shown, *factors])


@frozen
class CostExpressions:
    """The cost of a program on one device for all sizes that are multiples of a step.

    Args:
        sizes: The unknown sizes: the names of the dimensions of each, as ``sizes`` takes them.
        quantities: The quantities by the names of the fields of `Cost`; None for one that is not a polynomial.
        degree: The largest degree of polynomials that were tried.
        least: The least size from which on the polynomials hold for sure.
        step: What sizes are multiples of: the number of devices, or the least size where a stride or the like rounds
            the others.
        devices: The number of devices.
        notes: What was assumed, and that the cost is an estimate where there is no local program.
    """

    sizes: tuple[tuple[str, ...], ...]
    quantities: Mapping[str, Polynomial | None]
    degree: int
    least: int
    step: int
    devices: int
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        texts = self.texts
        width = max(map(len, texts))
        lines = (f"  {name:<{width}}  {text}" for name, text in texts.items())
        return "\n".join([self.title, *lines, *(f"note: {note}" for note in self.notes)])

    @property
    def title(self) -> str:
        """The headline of reports."""
        return f"Cost on one of {self.devices} devices by {', '.join(names[0] for names in self.sizes)}"

    @property
    def texts(self) -> dict[str, str]:
        """The texts of the quantities."""
        otherwise = f"not a polynomial of degree {self.degree} or less"
        return {name: otherwise if item is None else str(item) for name, item in self.quantities.items()}

    def to_json(self) -> dict[str, Any]:
        """Return the expressions as plain data."""
        shown = {name: None if item is None else str(item) for name, item in self.quantities.items()}
        sizes = list(map(list, self.sizes))
        numbers = {name: getattr(self, name) for name in ("devices", "degree", "least", "step")}
        return {"sizes": sizes, **numbers, "quantities": shown, "notes": list(self.notes)}


def has_unknown_sizes(result: Result) -> bool:
    """Return whether an argument of a program has a dimension of unknown size."""
    return bool(unknown_sizes(result.program, result.main, result.registry))


def cost_expressions(result: Result, on_point: Callable[[int, int], None] | None = None) -> CostExpressions:
    """Return what a program costs as expressions in its unknown sizes.

    Args:
        result: The propagated program.
        on_point: Called with the number of points that are counted, and of those that there are.

    Raises:
        UnsupportedError: no size is unknown, or too many are; or a size does not follow from those of arguments.
    """
    sizes = tuple(map(tuple, unknown_sizes(result.program, result.main, result.registry)))
    degrees = [degree for degree in _DEGREES if comb(len(sizes) + degree, degree) <= _MOST_POINTS]
    if not sizes or not degrees:
        message = f"the arguments have {len(sizes) or 'no'} unknown sizes"
        hint = f"give some of them, as by sizes={{{sizes[0][0]!r}: 64}}" if sizes else "ask for the cost itself"
        raise UnsupportedError(Diagnostic("size-not-known", message, hint=hint))
    devices = max([mesh.total_size for mesh in result.program.meshes.values()], default=1)
    return _Counter(result, sizes, devices * _LARGE, devices, on_point).fit(degrees)


@define
class _Counter:
    """The costs of one program at points: sizes that are multiples of the least one."""

    result: Result
    sizes: tuple[tuple[str, ...], ...]
    least: int
    devices: int
    on_point: Callable[[int, int], None] | None
    costs: dict[Point, Cost] = field(factory=dict, init=False)

    def fit(self, degrees: Sequence[int]) -> CostExpressions:
        """Return the polynomials through the fewest points that fit all others."""
        polynomials: dict[str, Polynomial | None] = dict.fromkeys(QUANTITIES)
        for degree in degrees:
            exponents = _exponents(len(self.sizes), degree)
            points = [tuple(power + 1 for power in powers) for powers in exponents]
            checks = [tuple(degree + 2 + number for number in range(len(self.sizes))), (degree + 3,) * len(self.sizes)]
            for number, point in enumerate((*points, *checks)):
                self._count(point)
                if self.on_point is not None:
                    self.on_point(number + 1, len(points) + len(checks))
            missing = [name for name, polynomial in polynomials.items() if polynomial is None]
            polynomials |= {name: self._polynomial(name, exponents, points, checks) for name in missing}
            if None not in polynomials.values():
                break
        step = self.devices if self._holds_between(polynomials, checks[0]) else self.least
        # Other notes are about some of the sizes.
        first, *others = (cost.notes for cost in self.costs.values())
        notes = tuple(note for note in first if all(note in known for known in others))
        if step != self.devices:
            notes += (f"exact for multiples of {step}: a stride or the like rounds other sizes",)
        return CostExpressions(self.sizes, polynomials, degree, self.least, step, self.devices, notes)

    def _holds_between(self, polynomials: Mapping[str, Polynomial | None], point: Point) -> bool:
        """Return whether the polynomials hold where devices divide sizes, but strides and the like may round them."""
        between = tuple(multiple + Fraction(1, _LARGE) for multiple in point)
        try:
            self._count(between)
        except ShardyError:  # the program has no such sizes
            return False
        return all(item is None or self._fits(name, item, between) for name, item in polynomials.items())

    def _fits(self, name: str, polynomial: Polynomial, point: Point) -> bool:
        value = getattr(self.costs[point], name).value
        fitted = polynomial.at([multiple * self.least for multiple in point])
        return value is not None and abs(fitted - value) <= _TOLERANCE * max(abs(value), 1.0)

    def _count(self, point: Point) -> None:
        if point not in self.costs:
            numbers = zip(self.sizes, point, strict=True)
            sizes = {name: int(multiple * self.least) for names, multiple in numbers for name in names}
            arguments = evolve(arguments_of_run(self.result), sizes=sizes, trace=False)
            self.costs[point] = propagate(**keywords(arguments)).cost()

    def _polynomial(
        self, name: str, exponents: Sequence[Powers], points: Sequence[Point], checks: Sequence[Point]
    ) -> Polynomial | None:
        """Return the polynomial of a quantity through some points; None where it misses others."""
        values = {point: getattr(self.costs[point], name).value for point in (*points, *checks)}
        if None in values.values():
            return None
        rows = [[Fraction(_monomial(point, powers)) for powers in exponents] for point in points]
        solved = _solve(rows, [Fraction(values[point]) for point in points])
        scaled = {
            powers: (coefficient / self.least ** sum(powers)).limit_denominator(10**6)
            for powers, coefficient in zip(exponents, solved, strict=True)
        }
        terms = {powers: coefficient for powers, coefficient in scaled.items() if coefficient}
        polynomial = Polynomial(tuple(names[0] for names in self.sizes), terms)
        return polynomial if all(self._fits(name, polynomial, point) for point in values) else None


def _monomial(sizes: Sequence[Any], powers: Powers) -> Any:
    return prod(size**power for size, power in zip(sizes, powers, strict=True))


def _exponents(count: int, degree: int) -> list[Powers]:
    """Return the powers of all products of some sizes up to a degree."""
    if count == 0:
        return [()]
    return [(first, *rest) for first in range(degree + 1) for rest in _exponents(count - 1, degree - first)]


def _solve(rows: list[list[Fraction]], values: list[Fraction]) -> list[Fraction]:
    """Solve a system of linear equations, which has one solution."""
    count = len(rows)
    table = [[*row, value] for row, value in zip(rows, values, strict=True)]
    for column in range(count):
        pivot = next(row for row in range(column, count) if table[row][column])
        table[column], table[pivot] = table[pivot], table[column]
        head = table[column][column]
        table[column] = [item / head for item in table[column]]
        for row in range(count):
            factor = table[row][column]
            if row != column and factor:
                table[row] = [item - factor * other for item, other in zip(table[row], table[column], strict=True)]
    return [row[-1] for row in table]
