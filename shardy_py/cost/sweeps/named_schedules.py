"""Schedules with the names that tables show."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import repeat
from pathlib import Path

from attrs import evolve

from shardy_py.errors import Diagnostic, OptionError
from shardy_py.plugins import Registry
from shardy_py.schedule.from_options import ScheduleLike, make_schedule
from shardy_py.schedule.model import Schedule
from shardy_py.schedule.toml import format_schedule
from shardy_py.support.arguments import shown
from shardy_py.values import frozen


@frozen
class NamedSchedule:
    """A schedule with the name that tables show.

    Args:
        name: The name.
        schedule: The schedule.
    """

    name: str
    schedule: Schedule

    @property
    def text(self) -> str:
        """The schedule as TOML, which `propagate` takes; equal schedules have equal texts.

        Raises:
            OptionError: an entry has a predicate.
        """
        return format_schedule(self.schedule)


Schedules = Iterable[ScheduleLike | NamedSchedule] | Mapping[str, ScheduleLike]
"""Schedules as a caller gives them: in order, or by the names that tables show."""


def as_schedules(
    schedules: Schedules | None,
) -> Mapping[str, ScheduleLike] | tuple[ScheduleLike | NamedSchedule, ...] | None:
    """Return schedules as a caller gives them, those in order as a tuple.

    Raises:
        OptionError: they are neither in order nor by names.
    """
    if schedules is None or isinstance(schedules, Mapping):
        return schedules
    if isinstance(schedules, Iterable) and not isinstance(schedules, (str, bytes)):
        return tuple(schedules)
    message = f"schedules are a list, or names to schedules, not {shown(schedules)}"
    raise OptionError(Diagnostic("invalid-schedules", message, hint=f"schedules=[{shown(schedules)}]"))


def schedule_of(item: ScheduleLike | NamedSchedule) -> ScheduleLike:
    """Return a schedule without its name."""
    return item.schedule if isinstance(item, NamedSchedule) else item


def named_schedules(schedules: Schedules, registry: Registry | None = None) -> tuple[NamedSchedule, ...]:
    """Return schedules with names: those given, that of a built-in one, the path of a file, or ``schedule N``.

    Args:
        schedules: The schedules as a caller gives them.
        registry: The plugins, with the order of their ops and their traits; none by default.

    Raises:
        OptionError: there is no such schedule, one cannot be written as TOML, or two have the same name.
    """
    registry = registry or Registry()
    all_named: list[NamedSchedule] = []
    names = map(str, schedules) if isinstance(schedules, Mapping) else repeat("")
    items = schedules.values() if isinstance(schedules, Mapping) else schedules
    for number, (name, item) in enumerate(zip(names, items, strict=False)):
        named = item if isinstance(item, NamedSchedule) else _named(item, number, registry)
        named = evolve(named, name=name or named.name)
        if any(named.name == other.name for other in all_named):
            message = f"two schedules are named {named.name!r}"
            raise OptionError(Diagnostic("duplicate-schedule", message, hint="give each schedule once"))
        # A schedule without a text could neither be saved nor be sent to another process.
        format_schedule(named.schedule)
        all_named.append(named)
    return tuple(all_named)


def without_entries(item: NamedSchedule, prefix: str = "") -> Iterator[NamedSchedule]:
    """Yield a schedule without each of its entries, one at a time; a level that loses its only entry goes.

    Args:
        item: The schedule.
        prefix: What the names begin with, before the numbers of the level and the entry.
    """
    levels = item.schedule.levels
    for number, level in enumerate(levels):
        for index, entry in enumerate(level.entries):
            other_entries = level.entries[:index] + level.entries[index + 1 :]
            remaining_levels = (
                *levels[:number],
                *([evolve(level, entries=other_entries)] if other_entries else ()),
                *levels[number + 1 :],
            )
            if remaining_levels:
                schedule = evolve(item.schedule, levels=remaining_levels)
                yield NamedSchedule(f"{prefix}without {number}.{index} {entry}", schedule)


def _named(item: ScheduleLike, number: int, registry: Registry) -> NamedSchedule:
    text = str(item) if isinstance(item, (str, Path)) else shown(item)
    name = f"schedule {number}" if isinstance(item, Schedule) else text
    # The default schedule is the one that runs where none is given.
    schedule_like = None if name == "default" and not isinstance(item, Schedule) else item
    schedule = make_schedule(schedule_like, plugin_priorities=registry.priorities, plugin_traits=registry.trait_names)
    return NamedSchedule(name, schedule)
