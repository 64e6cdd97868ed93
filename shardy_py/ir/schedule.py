"""Op priorities as data: ordered levels of selectors with directions."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from enum import IntFlag
from fnmatch import fnmatchcase
from functools import cached_property
from typing import Any, Literal

from attrs import define, field, frozen
from attrs.validators import ge

from shardy_py.ir.graph import Op
from shardy_py.ir.interfaces import Trait
from shardy_py.sharding.rule import FactorKind


class Direction(IntFlag):
    """Where shardings may go along a factor; union and intersection are those of the bits."""

    NONE = 0
    FORWARD = 1
    BACKWARD = 2
    BOTH = 3


Uses = Literal["any", "single", "multiple"]


def _always(op: Op) -> bool:
    return True


def _matches(name: str, globs: tuple[str, ...]) -> bool:
    return any(fnmatchcase(name, glob) for glob in globs)


@frozen
class Selector:
    """Which ops, and which of their factors, an entry speaks of.

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

    names: tuple[str, ...] = ()
    traits: tuple[Trait, ...] = ()
    excluded_traits: tuple[Trait, ...] = ()
    factor_kinds: tuple[FactorKind, ...] = ()
    uses: Uses = "any"
    predicate: Callable[[Op], bool] = _always
    excluded_names: tuple[str, ...] = field(default=(), kw_only=True)

    @property
    def is_predicated(self) -> bool:
        """Whether a function of the op narrows the choice."""
        return self.predicate is not _always

    def matches_op(self, op: Op, traits: frozenset[Trait]) -> bool:
        """Return whether the op is selected, uses and factors aside."""
        if any(trait in traits for trait in self.excluded_traits) or _matches(op.name, self.excluded_names):
            return False
        is_named = _matches(op.name, self.names) or any(trait in traits for trait in self.traits)
        if (self.names or self.traits) and not is_named:
            return False
        return self.predicate(op)

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
            parts.append(f"where {self.predicate.__name__}")
        return ", ".join(parts)


@frozen
class Entry:
    """A selector with the direction it allows."""

    selector: Selector
    direction: Direction = Direction.BOTH

    def __str__(self) -> str:
        return f"{self.selector} -> {self.direction.name}"


@frozen
class OpPriority:
    """What a plugin says of its own ops: from which level on they propagate, and how.

    The other levels of the default schedule, but the last, no longer speak of the ops that are named.

    Args:
        level: The index of the level of the default schedule that the entry is added to.
        entry: The ops, by names, and the direction.
    """

    level: int = field(validator=ge(0))
    entry: Entry

    def __str__(self) -> str:
        return f"level {self.level}: {self.entry}"


@frozen
class Level:
    """The entries that a level adds to those of the levels before it."""

    name: str
    entries: tuple[Entry, ...]

    def __str__(self) -> str:
        return f"{self.name}:\n" + "\n".join(f"  {entry}" for entry in self.entries)


@define(frozen=True, slots=False)
class Schedule:
    """Ordered levels; propagation reaches a fixpoint at each before it goes on to the next."""

    levels: tuple[Level, ...] = field()

    @levels.validator
    def _check(self, attribute: object, value: tuple[Level, ...]) -> None:
        if not value:
            raise ValueError("a schedule has at least one level")

    @cached_property
    def entries(self) -> tuple[tuple[int, Entry], ...]:
        """Every entry with the index of its level."""
        return tuple((index, entry) for index, level in enumerate(self.levels) for entry in level.entries)

    @cached_property
    def is_predicated(self) -> bool:
        """Whether functions of ops narrow a choice."""
        return any(entry.selector.is_predicated for _, entry in self.entries)

    @cached_property
    def derived(self) -> dict[Hashable, Any]:
        """What has been derived from the schedule, so that it is derived once for all programs."""
        return {}

    def __str__(self) -> str:
        return "\n".join(f"{index}. {level}" for index, level in enumerate(self.levels))
