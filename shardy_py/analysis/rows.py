"""What a comparison of orderings says: a row per schedule."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Literal, get_args

from attrs import asdict, field, fields, frozen

from shardy_py.errors import Diagnostic, OptionError
from shardy_py.ir.schedule import Schedule
from shardy_py.propagation.schedule_text import parse_schedule

Measure = Literal["time", "bytes", "memory"]
"""What is to be small: the estimated time, the bytes that are communicated, the peak memory of a device."""

MEASURES: tuple[Measure, ...] = get_args(Measure)


def _counts(value: Iterable[Iterable[Any]]) -> tuple[tuple[str, int], ...]:
    return tuple((str(kind), int(count)) for kind, count in value)


def _texts(value: Iterable[str]) -> tuple[str, ...]:
    return tuple(value)


@frozen
class Row:
    """What one schedule leads to.

    Args:
        name: The name of the schedule.
        schedule: The schedule as TOML, which `propagate` takes.
        values_changed: How many tensors have another sharding than with the first schedule of the comparison.
        collectives: The collectives by kind, each with how often a device runs it in one run of the program.
        communicated_bytes: The bytes that the collectives of a device move.
        communication_seconds: The estimated time of the collectives.
        compute_seconds: The estimated time of everything else.
        seconds: The estimated time in all.
        peak_bytes: The most that is in the memory of a device at once.
        device_flops: The floating-point operations of a device.
        compute_balance: The operations of the program without any sharding, over those of all devices together: 1
            where no work is done twice.
    """

    name: str
    schedule: str
    values_changed: int
    collectives: tuple[tuple[str, int], ...] = field(converter=_counts)
    communicated_bytes: int
    communication_seconds: float
    compute_seconds: float
    seconds: float
    peak_bytes: int
    device_flops: int
    compute_balance: float

    @property
    def num_collectives(self) -> int:
        """How many collectives there are."""
        return sum(count for _, count in self.collectives)

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
    "time": lambda row: row.seconds,
    "bytes": lambda row: row.communicated_bytes,
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


@frozen
class Comparison:
    """The table of a comparison.

    Args:
        rows: The rows, the best first; rows that are equally good are in the order in which they were given.
        first: The name of the schedule that the others are compared with.
        sorted_by: What the rows are sorted by.
        refused: The schedules without a row, in the order in which they were given.
    """

    rows: tuple[Row, ...]
    first: str
    sorted_by: Measure
    refused: tuple[Refusal, ...] = ()

    @property
    def best(self) -> Row:
        """The first row."""
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
        return make_comparison((*self.rows, *self.refused), first=self.first, sorted_by=measure)


def make_comparison(outcomes: Iterable[Outcome], *, first: str, sorted_by: Measure = "time") -> Comparison:
    """Return the table of all outcomes.

    Args:
        outcomes: What became of the schedules, in the order in which they were given.
        first: The schedule that the others are compared with.
        sorted_by: What the rows are sorted by.
    """
    found = tuple(outcomes)
    key = measure_of(sorted_by)
    rows = tuple(sorted((item for item in found if isinstance(item, Row)), key=key))
    return Comparison(rows, first, sorted_by, tuple(item for item in found if isinstance(item, Refusal)))


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
            return class_(**data)
    raise ValueError("this is neither a row nor a refusal")
