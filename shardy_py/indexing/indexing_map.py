"""Indexing maps: expressions over bounded variables under constraints, and the maps of one op in both directions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, Final

from attrs import Factory, evolve, field

from shardy_py.errors import Diagnostic, VerificationError
from shardy_py.indexing.expressions import Expression, Variable, VariableKind, evaluate, variables_of
from shardy_py.indexing.text import MapParser, Spelling, print_expression, unique_names
from shardy_py.support.texts import refuse_bad_text, require_text
from shardy_py.values import frozen

KNOWN_EMPTY: Final = "KNOWN EMPTY"
UNDEFINED: Final = "UNDEFINED"


@frozen
class Interval:
    """The integers from a lower bound to an upper one, both included; empty where the upper one is less."""

    lower: int
    upper: int

    @property
    def is_empty(self) -> bool:
        """True if it has no integers."""
        return self.upper < self.lower

    @property
    def is_point(self) -> bool:
        """True if it has just one integer."""
        return self.lower == self.upper

    @property
    def size(self) -> int:
        """The number of integers in it."""
        return max(0, self.upper - self.lower + 1)

    def contains(self, other: Interval) -> bool:
        """Return whether another interval lies in it."""
        return self.lower <= other.lower and other.upper <= self.upper

    def meet(self, other: Interval) -> Interval:
        """Return the intersection with another interval."""
        return Interval(max(self.lower, other.lower), min(self.upper, other.upper))

    def __str__(self) -> str:
        return f"[{self.lower}, {self.upper}]"


@frozen
class Bound:
    """The bounds of a variable, and its name; "" for the default one, such as ``d0``."""

    interval: Interval
    name: str = ""


Constraints = tuple[tuple[Expression, Interval], ...]


@frozen(slots=False, cache_hash=True)
class IndexingMap:
    """A map from points of a domain to indices.

    Args:
        results: One expression per index.
        dims: The bounds of the dimensions ``d0``, ``d1``...
        ranges: The bounds of the range variables ``s0``...: what a loop runs over.
        runtimes: The bounds of the run-time variables ``rt0``...: values read when the program runs.
        constraints: Expressions that have to lie in an interval, sorted by their text.
        is_undefined: Whether nothing is known about the indices.

    >>> print(IndexingMap.parse("(d0)[s0] -> (d0 floordiv 2, d0 + s0), domain: d0 in [0, 3], s0 in [0, 1]"))
    (d0)[s0] -> (d0 / 2, d0 + s0), domain: d0 in [0, 3], s0 in [0, 1]
    """

    results: tuple[Expression, ...]
    dims: tuple[Bound, ...] = ()
    ranges: tuple[Bound, ...] = ()
    runtimes: tuple[Bound, ...] = ()
    constraints: Constraints = field(default=())
    is_undefined: bool = False

    @classmethod
    def undefined(cls) -> IndexingMap:
        """Return the map about which nothing is known."""
        return cls((), is_undefined=True)

    @classmethod
    def of_shape(cls, shape: Sequence[int], results: Iterable[Expression], **more: Any) -> IndexingMap:
        """Return a map whose dimensions run over a shape.

        Args:
            shape: The number of values of every dimension.
            results: The results.
            more: Further fields: ``ranges``, ``runtimes``, ``constraints``.
        """
        return cls(tuple(results), bounds_of(shape), **more)

    @classmethod
    def parse(cls, text: str) -> IndexingMap:
        """Return the map that a text says.

        Raises:
            ParseError: the text is not a valid indexing map; the error shows the column.
        """
        require_text(text, "the indexing map", code="malformed-indexing-map")
        with refuse_bad_text("the indexing map", code="malformed-indexing-map"):
            return cls._parse(text)

    @classmethod
    def _parse(cls, text: str) -> IndexingMap:
        if text.strip() in (KNOWN_EMPTY, UNDEFINED):
            return cls.undefined() if text.strip() == UNDEFINED else cls((), (Bound(Interval(0, -1)),))
        parser = MapParser(text)
        groups = [parser.listed_names("(", ")"), parser.listed_names("[", "]"), parser.listed_names("{", "}")]
        twice = unique_names(groups)
        if twice is not None:
            raise parser.error(f"the name {twice!r} stands twice")
        for kind, names in zip(VariableKind, groups, strict=True):
            parser.names.update({name: Variable(kind, number) for number, name in enumerate(names)})
        parser.expect("->")
        results = parser.expressions()
        bounds, constraints = _parse_domain(parser)
        for name, variable in parser.names.items():
            if variable not in bounds:
                raise parser.error(f"the domain does not bound {name!r}")
        per_kind = [
            tuple(
                Bound(bounds[Variable(kind, number)], "" if name == f"{kind.prefix}{number}" else name)
                for number, name in enumerate(names)
            )
            for kind, names in zip(VariableKind, groups, strict=True)
        ]
        dims, ranges, runtimes = per_kind
        return cls(tuple(results), dims, ranges, runtimes).with_constraints(constraints)

    def bounds(self, kind: VariableKind) -> tuple[Bound, ...]:
        """Return the bounds of the variables of a kind."""
        return (self.dims, self.ranges, self.runtimes)[kind]

    @cached_property
    def variables(self) -> Mapping[Variable, Bound]:
        """Every variable with its bounds."""
        return {
            Variable(kind, number): bound for kind in VariableKind for number, bound in enumerate(self.bounds(kind))
        }

    @cached_property
    def names(self) -> Mapping[Variable, str]:
        """The name of every variable."""
        return {
            variable: bound.name or f"{variable.kind.prefix}{variable.number}"
            for variable, bound in self.variables.items()
        }

    @property
    def is_known_empty(self) -> bool:
        """True if the domain is empty, as far as the bounds of single variables tell."""
        return any(bound.interval.is_empty for bound in self.variables.values()) or any(
            interval.is_empty for _, interval in self.constraints
        )

    @cached_property
    def used(self) -> frozenset[Variable]:
        """The variables in results and constraints."""
        expressions = (*self.results, *(expression for expression, _ in self.constraints))
        return frozenset().union(*map(variables_of, expressions))

    def with_constraints(self, constraints: Iterable[tuple[Expression, Interval]]) -> IndexingMap:
        """Return the map under other constraints: sorted by text, those on the same expression met.

        A constraint on a bare variable is kept as one; `simplified` turns it into bounds.
        """
        met: dict[Expression, Interval] = {}
        for expression, interval in constraints:
            met[expression] = interval.meet(met[expression]) if expression in met else interval
        ordered = sorted(met.items(), key=lambda item: print_expression(item[0], self.names))
        return evolve(self, constraints=tuple(ordered))

    def evaluate(self, dims: Sequence[Any], ranges: Sequence[Any] = (), runtimes: Sequence[Any] = ()) -> list[Any]:
        """Return the results for values of the variables: integers, or arrays of numpy that broadcast together.

        Raises:
            VerificationError: not one value per variable, or the map is undefined.
        """
        values = self._values(dims, ranges, runtimes)
        return [evaluate(result, values.__getitem__) for result in self.results]

    def holds(self, dims: Sequence[Any], ranges: Sequence[Any] = (), runtimes: Sequence[Any] = ()) -> Any:
        """Return whether values of the variables are in the domain: a bool, or an array of them."""
        values = self._values(dims, ranges, runtimes)
        inside: Any = True
        for value, bound in zip(values.values(), self.variables.values(), strict=True):
            inside = inside & (value >= bound.interval.lower) & (value <= bound.interval.upper)
        for expression, interval in self.constraints:
            value = evaluate(expression, values.__getitem__)
            inside = inside & (value >= interval.lower) & (value <= interval.upper)
        return inside

    def _values(self, *groups: Sequence[Any]) -> dict[Variable, Any]:
        value_of: dict[Variable, Any] = {}
        if self.is_undefined:
            raise VerificationError(Diagnostic("undefined-indexing-map", "an undefined map has no values"))
        for kind, values in zip(VariableKind, groups, strict=True):
            if len(values) != len(self.bounds(kind)):
                message = (
                    f"the map has {len(self.bounds(kind))} variables {kind.prefix}, {len(values)} values are given"
                )
                raise VerificationError(Diagnostic("indexing-map-values", message))
            value_of.update({Variable(kind, number): value for number, value in enumerate(values)})
        return value_of

    def print(self, *, spelling: Spelling = "/") -> str:
        """Return the text; `parse` gives the map back.

        Args:
            spelling: How a division is written: ``/`` or ``floordiv``.
        """
        if self.is_undefined:
            return UNDEFINED
        if self.is_known_empty:
            return KNOWN_EMPTY
        names = self.names
        groups = [[names[Variable(kind, n)] for n in range(len(self.bounds(kind)))] for kind in VariableKind]
        head = f"({', '.join(groups[0])})"
        head += f"[{', '.join(groups[1])}]" if groups[1] else ""
        head += f"{{{', '.join(groups[2])}}}" if groups[2] else ""
        results = ", ".join(print_expression(result, names, spelling=spelling) for result in self.results)
        domain = [f"{names[variable]} in {bound.interval}" for variable, bound in self.variables.items()]
        domain += [
            f"{print_expression(expression, names, spelling=spelling)} in {interval}"
            for expression, interval in self.constraints
        ]
        return f"{head} -> ({results})" + (f", domain: {', '.join(domain)}" if domain else "")

    def __str__(self) -> str:
        return self.print()


def bounds_of(shape: Iterable[int]) -> tuple[Bound, ...]:
    """Return the bounds of variables that run over a shape."""
    return tuple(Bound(Interval(0, size - 1)) for size in shape)


def _parse_domain(parser: MapParser) -> tuple[dict[Variable, Interval], list[tuple[Expression, Interval]]]:
    bounds: dict[Variable, Interval] = {}
    constraints: list[tuple[Expression, Interval]] = []
    if parser.skip(","):
        parser.expect("domain")
        parser.expect(":")
        while parser.ahead:
            expression = parser.expression()
            interval = Interval(*parser.bounds())
            if isinstance(expression, Variable) and expression not in bounds:
                bounds[expression] = interval
            else:
                constraints.append((expression, interval))
            if not parser.skip(","):
                break
    if parser.ahead:
        raise parser.error("the map has ended here")
    return bounds, constraints


def _maps(values: Iterable[IndexingMap]) -> tuple[IndexingMap, ...]:
    return tuple(values)


def _maps_where_known(values: Iterable[IndexingMap | None]) -> tuple[IndexingMap | None, ...]:
    return tuple(values)


@frozen
class OpIndexing:
    """Indexing maps between the operands of an op and its first result.

    Args:
        output_to_input: Per operand, the map from an index of the result to the elements of the operand that are read.
        input_to_output: Per operand, the map from its index to the elements of the result that read it; None where
            there is no such map.
    """

    output_to_input: tuple[IndexingMap, ...] = field(converter=_maps)
    input_to_output: tuple[IndexingMap | None, ...] = field(
        default=Factory(lambda self: (None,) * len(self.output_to_input), takes_self=True), converter=_maps_where_known
    )
