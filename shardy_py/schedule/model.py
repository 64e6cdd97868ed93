"""Schedules as values: ordered levels of selectors with directions."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from enum import IntFlag
from fnmatch import fnmatchcase
from functools import cached_property
from typing import Any, Literal, TypeVar, get_args

from attrs import field

from shardy_py.errors import Diagnostic, OptionError, did_you_mean
from shardy_py.guards.error_texts import shown
from shardy_py.guards.guard import Guard, as_boolean
from shardy_py.ir.graph.program import Op
from shardy_py.ir.interfaces.ops import TRAITS, Trait
from shardy_py.sharding.rule import FactorKind
from shardy_py.values import define, frozen

_T = TypeVar("_T")


class Direction(IntFlag):
    """Direction in which shardings may go along a factor; union and intersection are those of the bits."""

    NONE = 0
    FORWARD = 1
    BACKWARD = 2
    BOTH = 3


Uses = Literal["any", "single", "multiple"]


def _always(op: Op) -> bool:
    return True


def _matches(name: str, globs: tuple[str, ...]) -> bool:
    return any(fnmatchcase(name, glob) for glob in globs)


def _refuse(message: str, hint: str = "") -> OptionError:
    return OptionError(Diagnostic("invalid-schedule", message, hint=hint))


def _names(names: Any) -> tuple[str, ...]:
    if isinstance(names, str):
        raise _refuse(f"the names of a selector are {names!r}, not a tuple of names", f"names=({names!r},)")
    return _tuple_of(names, str, "names of ops")


def _traits(traits: Any) -> tuple[Trait, ...]:
    if isinstance(traits, Trait):
        raise _refuse(f"the traits of a selector are the trait {traits}, not a tuple of traits", f"traits=({traits},)")
    wrong = next((item for item in traits if isinstance(item, str)), None) if isinstance(traits, Iterable) else None
    if wrong is not None:
        known = [trait.name for trait in TRAITS]
        hint = f"give the marker: traits=(sdy.{wrong},)" if wrong in known else did_you_mean(wrong, known)
        raise _refuse(f"a selector names the trait {wrong!r} as a text", hint)
    return _tuple_of(traits, Trait, "traits")


def _kinds(kinds: Any) -> tuple[FactorKind, ...]:
    if isinstance(kinds, FactorKind):
        raise _refuse(f"the factor kinds of a selector are {kinds}, not a tuple of kinds", f"factor_kinds=({kinds},)")
    return _tuple_of(kinds, FactorKind, "factor kinds")


def _tuple_of(value: Any, class_: type[_T], what: str) -> tuple[_T, ...]:
    """Return the items of an argument as a tuple.

    Raises:
        OptionError: it holds something else.
    """
    if value.__class__ is tuple and not value:
        return value
    if isinstance(value, str) or not isinstance(value, Iterable):
        hint = "put it into a tuple: (..., )" if isinstance(value, class_) else ""
        raise _refuse(f"{shown(value)} is not a tuple of {what}", hint)
    items = tuple(value)
    for item in items:
        if not isinstance(item, class_):
            hint = f"one of {', '.join(map(str, FactorKind))}" if class_ is FactorKind else ""
            raise _refuse(f"{shown(item)} is not among the {what} there are", hint)
    return items


def _entries(entries: Any) -> tuple[Entry, ...]:
    return _tuple_of(entries, Entry, "entries, each a selector with a direction,")


def _levels(levels: Any) -> tuple[Level, ...]:
    return _tuple_of(levels, Level, "levels")


@frozen
class Selector:
    """Choice of ops, and of their factors, for an entry.

    An op is selected when one of ``names`` matches it (shell globs are fine) or it has one of ``traits``; with
    neither given, every op is. ``excluded_traits``, ``excluded_names``, ``uses`` and ``predicate`` narrow the choice.

    Args:
        names: Op names or globs such as ``stablehlo.*``.
        traits: Trait markers.
        excluded_traits: An op with one of these is not selected.
        excluded_names: Nor is one whose name one of these matches.
        factor_kinds: The kinds of factors meant; () for all. An op without a rule of its own counts as pass-through.
        uses: ``single``: every operand that is not a scalar has one use; ``multiple``: the contrary.
        predicate: A function of the op.
    """

    names: tuple[str, ...] = field(default=(), converter=_names)
    traits: tuple[Trait, ...] = field(default=(), converter=_traits)
    excluded_traits: tuple[Trait, ...] = field(default=(), converter=_traits)
    factor_kinds: tuple[FactorKind, ...] = field(default=(), converter=_kinds)
    uses: Uses = "any"
    predicate: Callable[[Op], bool] = _always
    excluded_names: tuple[str, ...] = field(default=(), kw_only=True, converter=_names)

    def __attrs_post_init__(self) -> None:
        if self.uses not in get_args(Uses):
            raise _refuse(f"the uses of a selector are {shown(self.uses)}", f"one of {', '.join(get_args(Uses))}")
        if not callable(self.predicate):
            raise _refuse(f"the predicate of a selector is {shown(self.predicate)}, not a function of the op")

    @property
    def is_predicated(self) -> bool:
        """True if a function of the op narrows the choice."""
        return self.predicate is not _always

    def matches_op(self, op: Op, traits: frozenset[Trait]) -> bool:
        """Return whether the op is selected, uses and factors aside."""
        if any(trait in traits for trait in self.excluded_traits) or _matches(op.name, self.excluded_names):
            return False
        is_named = _matches(op.name, self.names) or any(trait in traits for trait in self.traits)
        if (self.names or self.traits) and not is_named:
            return False
        if not self.is_predicated:
            return True
        guard = Guard(self.predicate, "the predicate of a selector", "the schedule", OptionError, "invalid-schedule")
        return bool(guard.call(op, check=as_boolean))

    def matches_uses(self, *, multi_use: bool) -> bool:
        """Return whether the op's operands have the uses asked for."""
        return self.uses == "any" or (self.uses == "multiple") == multi_use

    def matches_factor(self, kind: FactorKind) -> bool:
        """Return whether the factor is meant."""
        return not self.factor_kinds or kind in self.factor_kinds

    def __str__(self) -> str:
        chosen = [*self.names, *(str(trait) for trait in self.traits)]
        parts = [" | ".join(chosen) or "*"]
        excluded = [*self.excluded_names, *(str(trait) for trait in self.excluded_traits)]
        if excluded:
            parts.append("except " + " | ".join(excluded))
        if self.factor_kinds:
            parts.append("factors " + " | ".join(kind.value for kind in self.factor_kinds))
        if self.uses != "any":
            parts.append(f"{self.uses} use")
        if self.is_predicated:
            parts.append(f"where {getattr(self.predicate, '__name__', 'a function holds')}")
        return ", ".join(parts)


@frozen
class Entry:
    """A selector with the direction it allows."""

    selector: Selector
    direction: Direction = Direction.BOTH

    def __attrs_post_init__(self) -> None:
        if not isinstance(self.selector, Selector):
            hint = 'Entry(Selector(names=("toy.add",)))'
            raise _refuse(f"an entry has a selector, not {shown(self.selector)}", hint)
        if not isinstance(self.direction, Direction):
            hint = f"one of {', '.join(f'Direction.{item.name}' for item in Direction)}"
            raise _refuse(f"an entry has a direction, not {shown(self.direction)}", hint)

    def __str__(self) -> str:
        return f"{self.selector} -> {self.direction.name}"


@frozen
class OpPriority:
    """Op priority of a plugin: the level from which some of its ops propagate, and how.

    The other levels of the default schedule, but the last, no longer speak of the ops that are named.

    Args:
        level: The index of the level of the default schedule that the entry is added to.
        entry: The ops, by names, and the direction.
    """

    level: int = field()
    entry: Entry = field()

    @level.validator
    def _check_level(self, attribute: object, level: Any) -> None:
        if not isinstance(level, int) or isinstance(level, bool):
            raise _refuse(f"the level of a priority is {shown(level)}, not a number", "OpPriority(0, Entry(...))")
        if level < 0:
            raise _refuse(f"the level of a priority is >= 0, not {level}", "levels are numbered from 0")

    @entry.validator
    def _check_entry(self, attribute: object, entry: Any) -> None:
        if not isinstance(entry, Entry):
            raise _refuse(f"a priority has an entry, not {shown(entry)}", "OpPriority(0, Entry(Selector(...)))")

    def __str__(self) -> str:
        return f"level {self.level}: {self.entry}"


@frozen
class Level:
    """The entries that a level adds to those of the levels before it."""

    name: str
    entries: tuple[Entry, ...] = field(converter=_entries)

    def __str__(self) -> str:
        return f"{self.name}:\n" + "\n".join(f"  {entry}" for entry in self.entries)


@define(frozen=True, slots=False)
class Schedule:
    """Ordered levels; propagation reaches a fixpoint at each before it goes on to the next.

    The fixpoint is that of the reference, which does not put back every op that sees a change.

    Args:
        levels: The levels, at least one.
        settles: Whether the last level is repeated until no op would change anything.
    """

    levels: tuple[Level, ...] = field(converter=_levels)
    settles: bool = field(default=False, kw_only=True)

    @levels.validator
    def _check(self, attribute: object, value: tuple[Level, ...]) -> None:
        if not value:
            raise _refuse("a schedule has at least one level", "Schedule((Level(...),))")

    @cached_property
    def entries(self) -> tuple[tuple[int, Entry], ...]:
        """Every entry with the index of its level."""
        return tuple((index, entry) for index, level in enumerate(self.levels) for entry in level.entries)

    @cached_property
    def is_predicated(self) -> bool:
        """True if functions of ops narrow a choice."""
        return any(entry.selector.is_predicated for _, entry in self.entries)

    @cached_property
    def derived(self) -> dict[Hashable, Any]:
        """Values derived from the schedule, kept so that they are derived once for all programs."""
        return {}

    def __str__(self) -> str:
        lines = [f"{index}. {level}" for index, level in enumerate(self.levels)]
        return "\n".join([*lines, "the last level again, until nothing changes"] if self.settles else lines)
