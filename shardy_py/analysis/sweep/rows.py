"""What a comparison of orderings says: a row per schedule."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from math import isfinite
from typing import Any, Literal, get_args

from attrs import asdict, field, fields, frozen

from shardy_py.errors import Diagnostic, OptionError
from shardy_py.schedule.model import Schedule
from shardy_py.schedule.toml import parse_schedule

Measure = Literal["time", "bytes", "memory"]
"""What is to be small: the estimated time, the bytes that are communicated, the peak memory of a device."""

MEASURES: tuple[Measure, ...] = get_args(Measure)


@frozen
class Collectives:
    """The collectives of one kind.

    Args:
        kind: The kind, for example ``all_gather``.
        count: How many stand in the program.
        bytes: What one device sends with them in all runs.
    """

    kind: str
    count: int
    bytes: float


def _collectives(value: Iterable[Any]) -> tuple[Collectives, ...]:
    return tuple(item if isinstance(item, Collectives) else Collectives(**item) for item in value)


def _texts(value: Iterable[str]) -> tuple[str, ...]:
    return tuple(value)


@frozen
class Row:
    """What one schedule leads to, on one device; see `shardy_py.analysis.cost.Cost` for how numbers are obtained.

    Args:
        name: The name of the schedule.
        schedule: The schedule as TOML, which `propagate` takes.
        values_changed: How many tensors have another sharding than with the first schedule of the comparison.
        collectives: The collectives by kind.
        communication_bytes: The bytes that the device sends.
        communication_seconds: How long that takes; None without a machine.
        compute_seconds: How long computing takes; None without a machine.
        seconds: All the time; None without a machine.
        peak_bytes: The most that is in memory at once.
        flops: The operations.
        balance: How much of the work of all devices is useful: 1 where nothing is computed twice; None where nothing
            is computed.
    """

    name: str
    schedule: str
    values_changed: int
    collectives: tuple[Collectives, ...] = field(converter=_collectives)
    communication_bytes: float
    communication_seconds: float | None
    compute_seconds: float | None
    seconds: float | None
    peak_bytes: float
    flops: float
    balance: float | None

    @property
    def num_collectives(self) -> int:
        """How many collectives there are."""
        return sum(item.count for item in self.collectives)

    def parsed_schedule(self) -> Schedule:
        """Return the schedule as a value."""
        return parse_schedule(self.schedule)


@frozen
class Refusal:
    """A schedule whose result a later pass cannot handle.

    Args:
        name: The name of the schedule.
        schedule: The schedule as TOML.
        problems: What is wrong, one text per problem.
    """

    name: str
    schedule: str
    problems: tuple[str, ...] = field(converter=_texts)


Outcome = Row | Refusal
"""What became of one schedule."""

_MEASURES: dict[Measure, Callable[[Row], float]] = {
    "time": lambda row: row.seconds or 0.0,
    "bytes": lambda row: row.communication_bytes,
    "memory": lambda row: row.peak_bytes,
}


def measure_of(measure: Measure) -> Callable[[Row], float]:
    """Return the function that takes a number from a row.

    Raises:
        OptionError: there is no such measure.
    """
    if measure not in _MEASURES:
        hint = f"use one of {', '.join(MEASURES)}"
        raise OptionError(Diagnostic("unknown-measure", f"there is no measure {measure!r}", hint=hint))
    return _MEASURES[measure]


def choose_measure(measure: Measure | None, machine: object | None) -> Measure:
    """Return the measure that a caller wants: by default the time, and without a machine the bytes.

    Raises:
        OptionError: there is no such measure, or no machine that could tell the time.
    """
    if measure is None:
        return "bytes" if machine is None else "time"
    measure_of(measure)
    if measure == "time" and machine is None:
        raise OptionError(Diagnostic("no-machine", "there is no time without a machine", hint="give a machine"))
    return measure


@frozen
class Comparison:
    """The table of a comparison.

    Args:
        rows: The rows, the best first; rows that are equally good are in the order in which they were given.
        first: The name of the schedule that the others are compared with.
        sorted_by: What the rows are sorted by.
        refused: The schedules without a row, in the order in which they were given.
        warnings: What is wrong with the store that outcomes were taken from.
    """

    rows: tuple[Row, ...]
    first: str
    sorted_by: Measure
    refused: tuple[Refusal, ...] = ()
    warnings: tuple[Diagnostic, ...] = ()

    @property
    def best(self) -> Row:
        """The first row.

        Raises:
            OptionError: no schedule has one.
        """
        if not self.rows:
            problems = (Diagnostic("no-result", f"{item.name}: {'; '.join(item.problems)}") for item in self.refused)
            raise OptionError(*problems)
        return self.rows[0]

    def row(self, name: str) -> Row:
        """Return the row of a schedule.

        Raises:
            OptionError: there is none of that name.
        """
        for row in self.rows:
            if row.name == name:
                return row
        raise OptionError(Diagnostic("unknown-schedule", f"the comparison has no schedule named {name!r}"))

    def sorted(self, measure: Measure) -> Comparison:
        """Return the same rows in another order."""
        outcomes: tuple[Outcome, ...] = (*self.rows, *self.refused)
        return make_comparison(outcomes, first=self.first, sorted_by=measure, warnings=self.warnings)


def make_comparison(
    outcomes: Iterable[Outcome], *, first: str, sorted_by: Measure = "time", warnings: Iterable[Diagnostic] = ()
) -> Comparison:
    """Return the table of all outcomes.

    Args:
        outcomes: What became of the schedules, in the order in which they were given.
        first: The schedule that the others are compared with.
        sorted_by: What the rows are sorted by.
        warnings: What is worth knowing.
    """
    found = tuple(outcomes)
    key = measure_of(sorted_by)
    rows = tuple(sorted((item for item in found if isinstance(item, Row)), key=key))
    refused = tuple(item for item in found if isinstance(item, Refusal))
    return Comparison(rows, first, sorted_by, refused, tuple(warnings))


def outcome_data(outcome: Outcome) -> dict[str, Any]:
    """Return an outcome as plain data that `parse_outcome` reads back."""
    return asdict(outcome)


def parse_outcome(data: Any) -> Outcome:
    """Return the outcome of plain data.

    Raises:
        ValueError: it is none.
    """
    for class_ in (Row, Refusal):
        if isinstance(data, dict) and set(data) == {item.name for item in fields(class_)}:
            _check_types(data, class_)
            return class_(**data)
    raise ValueError("this is neither a row nor a refusal")


def _check_types(data: Mapping[str, Any], class_: type) -> None:
    """Check that each value is what its field says.

    Raises:
        ValueError: one is not.
    """
    for item in fields(class_):
        check = _CHECKS[str(item.type)]
        if not check(data[item.name]):
            raise ValueError(f"its {item.name} is {str(data[item.name])[:60]!r}")


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and isfinite(value)


def _is_collective(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and set(value) == {item.name for item in fields(Collectives)}
        and all(_CHECKS[str(item.type)](value[item.name]) for item in fields(Collectives))
    )


_CHECKS: dict[str, Callable[[Any], bool]] = {
    "str": lambda value: isinstance(value, str),
    "int": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "float": _is_number,
    "float | None": lambda value: value is None or _is_number(value),
    "tuple[str, ...]": lambda value: isinstance(value, list) and all(isinstance(item, str) for item in value),
    "tuple[Collectives, ...]": lambda value: isinstance(value, list) and all(map(_is_collective, value)),
}
"""The types of fields to what says whether a value of JSON is of it."""
