"""Table of a comparison of schedules: a row per schedule, the best first."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Literal, get_args

from attrs import field

from shardy_py.cost.sweeps.outcomes import Outcome, RefusedSchedule, Row
from shardy_py.errors import Diagnostic, OptionError, as_warnings
from shardy_py.support.arguments import shown
from shardy_py.values import frozen

Measure = Literal["time", "bytes", "memory"]
"""Measure to make small: the estimated time, the bytes that are communicated, the peak memory of a device."""

MEASURES: tuple[Measure, ...] = get_args(Measure)


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
    if not isinstance(measure, str) or measure not in _MEASURES:
        hint = f"use one of {', '.join(MEASURES)}"
        raise OptionError(Diagnostic("unknown-measure", f"there is no measure {shown(measure)}", hint=hint))
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
        sorted_by: The measure that the rows are sorted by.
        refused: The schedules without a row, in the order in which they were given.
        warnings: What is worth knowing of the program, and the problems of the store that outcomes were taken from.
    """

    rows: tuple[Row, ...]
    first: str
    sorted_by: Measure
    refused: tuple[RefusedSchedule, ...] = ()
    warnings: tuple[Diagnostic, ...] = field(default=(), converter=as_warnings)

    def __str__(self) -> str:
        """Return the rows as a table; a star marks the schedule that the others are compared with."""
        cells = [("schedule", "seconds", "collectives", "bytes sent", "peak bytes", "tensors changed")]
        for row in self.rows:
            name = f"{row.name} *" if row.name == self.first else row.name
            time = "" if row.seconds is None else f"{row.seconds:.3g}"
            sizes = (f"{row.communication_bytes:.0f}", f"{row.peak_bytes:.0f}")
            cells.append((name, time, str(row.num_collectives), *sizes, str(row.values_changed)))
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        lines = []
        for name, *numbers in cells:
            aligned = (number.rjust(width) for number, width in zip(numbers, widths[1:], strict=True))
            lines.append("  ".join([name.ljust(widths[0]), *aligned]))
        return "\n".join([*lines, *(f"{item.name}: refused: {'; '.join(item.problems)}" for item in self.refused)])

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
        outcomes: The outcomes of the schedules, in the order in which they were given.
        first: The schedule that the others are compared with.
        sorted_by: The measure that the rows are sorted by.
        warnings: The problems of the store.
    """
    found = tuple(outcomes)
    key = measure_of(sorted_by)
    rows = tuple(sorted((item for item in found if isinstance(item, Row)), key=key))
    refused = tuple(item for item in found if isinstance(item, RefusedSchedule))
    return Comparison(rows, first, sorted_by, refused, tuple(warnings))
