"""Outcomes of schedules: a row of numbers, or the refusal of a pass; as values and as plain data."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from sys import float_info
from typing import Any

from attrs import asdict, field, fields

from shardy_py.schedule.model import Schedule
from shardy_py.schedule.toml import parse_schedule
from shardy_py.values import frozen


@frozen
class Collectives:
    """The collectives of one kind.

    Args:
        kind: The kind, for example ``all_gather``.
        count: The number in the program.
        bytes: The bytes that one device sends with them in all runs.
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
    """Numbers of one schedule, on one device; see `shardy_py.cost.estimates.Cost` for how numbers are obtained.

    Args:
        name: The name of the schedule.
        schedule: The schedule as TOML, which `propagate` takes.
        values_changed: The number of tensors with another sharding than with the first schedule of the comparison.
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
        """Number of collectives."""
        return sum(item.count for item in self.collectives)

    def parsed_schedule(self) -> Schedule:
        """Return the schedule as a value."""
        return parse_schedule(self.schedule)


@frozen
class RefusedSchedule:
    """A schedule whose result a later pass cannot handle.

    Args:
        name: The name of the schedule.
        schedule: The schedule as TOML.
        problems: The problems, one text each.
    """

    name: str
    schedule: str
    problems: tuple[str, ...] = field(converter=_texts)


Outcome = Row | RefusedSchedule
"""Outcome of a schedule."""


def outcome_data(outcome: Outcome) -> dict[str, Any]:
    """Return an outcome as plain data that `parse_outcome` reads back."""
    return asdict(outcome)


def parse_outcome(data: Any) -> Outcome:
    """Return the outcome of plain data.

    Raises:
        ValueError: it is none.
    """
    for class_ in (Row, RefusedSchedule):
        if isinstance(data, dict) and set(data) == {item.name for item in fields(class_)}:
            _check_types(data, class_)
            return class_(**data)
    raise ValueError("this is neither a row nor a refusal")


def _check_types(data: Mapping[str, Any], class_: type) -> None:
    """Check the type of each field.

    Raises:
        ValueError: one is not.
    """
    for item in fields(class_):
        check = _CHECKS[str(item.type)]
        if not check(data[item.name]):
            raise ValueError(f"its {item.name} is {repr(data[item.name])[:60]}")


def _is_number(value: Any) -> bool:
    # An int is compared and not converted: it may be beyond floats.
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= float_info.max


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _TOO_MANY


def _is_text(value: Any) -> bool:
    """Return whether a value is a text that can be written in any file and on any terminal."""
    return isinstance(value, str) and _UNWRITABLE.search(value) is None


def _are_collectives(value: Any) -> bool:
    return (
        isinstance(value, list)
        and all(map(_is_collective, value))
        and len({item["kind"] for item in value}) == len(value)
    )


def _is_collective(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and set(value) == {item.name for item in fields(Collectives)}
        and all(_CHECKS[str(item.type)](value[item.name]) for item in fields(Collectives))
    )


_TOO_MANY = 2**63
_UNWRITABLE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
"""Control characters and halves of characters."""
_CHECKS: dict[str, Callable[[Any], bool]] = {
    "str": _is_text,
    "int": _is_count,
    "float": _is_number,
    "float | None": lambda value: value is None or _is_number(value),
    "tuple[str, ...]": lambda value: isinstance(value, list) and all(map(_is_text, value)),
    "tuple[Collectives, ...]": _are_collectives,
}
"""The types of fields to what says whether a value of JSON is of it."""
