"""What of a program can be put in order: its kinds of ops, with their traits and the kinds of their factors."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from attrs import frozen

from shardy_py.arguments import shown
from shardy_py.errors import Diagnostic, OptionError
from shardy_py.ir.interfaces import Trait
from shardy_py.plugins import Registry
from shardy_py.propagation.problem import NO_RULE, Problem
from shardy_py.schedule.builtin import BUILTIN
from shardy_py.schedule.default import DEFAULT
from shardy_py.schedule.given import ScheduleLike, make_schedule
from shardy_py.schedule.model import Entry, Level, Schedule, Selector
from shardy_py.schedule.toml import format_schedule
from shardy_py.sharding.rule import FactorKind

EVERYTHING = Level("everything", (Entry(Selector()),))
"""The last level of every ordering that is made here: nothing is left out."""


@frozen
class OpKind:
    """The ops of one name.

    Args:
        name: The name.
        traits: The traits they have, by which an ordering may speak of them together with others; sorted by name.
        factor_kinds: The kinds of their factors.
    """

    name: str
    traits: tuple[Trait, ...]
    factor_kinds: tuple[FactorKind, ...]


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


def op_kinds(problem: Problem) -> tuple[OpKind, ...]:
    """Return the kinds of ops of a program whose place in an ordering can make a difference, sorted by name.

    Ops without a rule, without factors, or whose direction is fixed have no place in an ordering.
    """
    traits: dict[str, set[Trait]] = {}
    kinds: dict[str, set[FactorKind]] = {}
    for group in problem.groups:
        if group.rule == NO_RULE or group.fixed is not None:
            continue
        rule = problem.outcomes.rules[group.rule]
        found = {rule.kind(factor) for factor in range(rule.num_factors)}
        if found:
            traits.setdefault(group.name, set()).update(group.traits)
            kinds.setdefault(group.name, set()).update(found)
    ordering = _ordering_traits()
    return tuple(
        OpKind(
            name,
            tuple(sorted(traits[name] & ordering, key=str)),
            tuple(kind for kind in FactorKind if kind in kinds[name]),
        )
        for name in sorted(kinds)
    )


def named_schedules(
    schedules: Iterable[ScheduleLike | NamedSchedule], registry: Registry | None = None
) -> tuple[NamedSchedule, ...]:
    """Return schedules with names: that of a built-in one, the path of a file, or ``schedule N``.

    Args:
        schedules: The schedules as a caller gives them.
        registry: What the plugins say of the order of their ops, and their traits; nothing by default.

    Raises:
        OptionError: there is no such schedule, one cannot be written as TOML, or two have the same name.
    """
    known = registry or Registry()
    found: list[NamedSchedule] = []
    for number, item in enumerate(schedules):
        named = item if isinstance(item, NamedSchedule) else _named(item, number, known)
        if any(named.name == other.name for other in found):
            message = f"two schedules are named {named.name!r}"
            raise OptionError(Diagnostic("duplicate-schedule", message, hint="give each schedule once"))
        # A schedule without a text could neither be saved nor be sent to another process.
        format_schedule(named.schedule)
        found.append(named)
    return tuple(found)


def _named(item: ScheduleLike, number: int, registry: Registry) -> NamedSchedule:
    text = str(item) if isinstance(item, (str, Path)) else shown(item)
    name = f"schedule {number}" if isinstance(item, Schedule) else text
    # The default schedule is the one that runs where none is given.
    given = None if name == "default" and not isinstance(item, Schedule) else item
    schedule = make_schedule(given, plugin_priorities=registry.priorities, plugin_traits=registry.trait_names)
    return NamedSchedule(name, schedule)


def _ordering_traits() -> set[Trait]:
    """Return the traits that the built-in schedules speak of; others say nothing about propagation."""
    selectors = [entry.selector for schedule in (DEFAULT, *BUILTIN.values()) for _, entry in schedule.entries]
    return {trait for selector in selectors for trait in (*selector.traits, *selector.excluded_traits)}
