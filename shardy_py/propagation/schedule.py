"""Op priorities as data: ordered levels of selectors with directions."""

from __future__ import annotations

from collections.abc import Callable
from fnmatch import fnmatchcase
from functools import cached_property
from typing import Literal

from attrs import define, field, frozen

from shardy_py.ir.graph import Op
from shardy_py.ir.interfaces import Broadcast, Elementwise, ForwardPassThrough, PassThrough, Trait
from shardy_py.propagation.factors import Direction
from shardy_py.sharding.rule import FactorKind

Uses = Literal["any", "single", "multiple"]


def _always(op: Op) -> bool:
    return True


@frozen
class Selector:
    """Which ops, and which of their factors, an entry speaks of.

    An op is selected when one of ``names`` matches it (shell globs are fine) or it has one of ``traits``; with
    neither given, every op is. ``excluded_traits``, ``uses`` and ``predicate`` narrow the choice.

    Args:
        names: Op names or globs such as ``stablehlo.*``.
        traits: Trait markers.
        excluded_traits: An op with one of these is not selected.
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

    @property
    def is_predicated(self) -> bool:
        """Whether a function of the op narrows the choice."""
        return self.predicate is not _always

    def matches_op(self, op: Op, traits: frozenset[Trait]) -> bool:
        """Return whether the op is selected, uses and factors aside."""
        if any(trait in traits for trait in self.excluded_traits):
            return False
        if self.names or self.traits:
            named = any(fnmatchcase(op.name, name) for name in self.names)
            if not named and not any(trait in traits for trait in self.traits):
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
        if self.excluded_traits:
            parts.append("except " + " | ".join(str(trait) for trait in self.excluded_traits))
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

    def __str__(self) -> str:
        return "\n".join(f"{index}. {level}" for index, level in enumerate(self.levels))


def matching_entries(schedule: Schedule, op: Op, traits: frozenset[Trait]) -> tuple[int, ...]:
    """Return the indices into `Schedule.entries` that select an op, uses and factors aside."""
    return tuple(index for index, (_, entry) in enumerate(schedule.entries) if entry.selector.matches_op(op, traits))


def kind_directions(
    schedule: Schedule, entries: tuple[int, ...], level: int, *, multi_use: bool
) -> dict[FactorKind, Direction]:
    """Return the direction of every kind of factor at a level: the union over this and the earlier levels.

    Args:
        schedule: The schedule.
        entries: The entries that select the op (see `matching_entries`).
        level: The index of the level.
        multi_use: Whether an operand of the op that is not a scalar has not exactly one use.
    """
    all_entries = schedule.entries
    found = dict.fromkeys(FactorKind, Direction.NONE)
    for index in entries:
        entry_level, entry = all_entries[index]
        if entry_level > level or not entry.selector.matches_uses(multi_use=multi_use):
            continue
        for kind in FactorKind:
            if entry.selector.matches_factor(kind):
                found[kind] |= entry.direction
    return found


EDGES = ("sdy.data_flow_edge", "sdy.func_data_flow_edge")

_early = Selector(names=EDGES, traits=(Elementwise, PassThrough))
_early_single = Selector(names=EDGES, traits=(Elementwise, PassThrough), uses="single")

FLAT = Schedule((Level("everything", (Entry(Selector()),)),))
"""One level: every op in both directions."""

DEFAULT = Schedule(
    (
        Level(
            "pass-through ops whose operands have one use",
            (
                Entry(_early_single),
                Entry(Selector(traits=(ForwardPassThrough,), uses="single"), Direction.FORWARD),
            ),
        ),
        Level(
            "pass-through ops",
            (Entry(_early), Entry(Selector(traits=(ForwardPassThrough,)), Direction.FORWARD)),
        ),
        Level(
            "pass-through factors, broadcasts backward",
            (
                Entry(Selector(excluded_traits=(Broadcast,), factor_kinds=(FactorKind.PASS_THROUGH,))),
                Entry(Selector(traits=(Broadcast,), factor_kinds=(FactorKind.PASS_THROUGH,)), Direction.BACKWARD),
            ),
        ),
        Level(
            "all factors, broadcasts backward",
            (
                Entry(Selector(excluded_traits=(Broadcast,))),
                Entry(Selector(traits=(Broadcast,)), Direction.BACKWARD),
            ),
        ),
        Level("everything", (Entry(Selector()),)),
    )
)
"""The reference's schedule."""
