"""Kinds of ops that a schedule can put in order, with their traits and the kinds of their factors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from random import Random

from shardy_py.cost.session import Session
from shardy_py.cost.sweeps.named_schedules import NamedSchedule, Schedules, named_schedules, without_entries
from shardy_py.errors import Diagnostic, OptionError
from shardy_py.ir.interfaces.ops import Trait
from shardy_py.propagation.problem import NO_RULE, Problem
from shardy_py.schedule.builtin import BUILTIN, DEFAULT, EVERYTHING
from shardy_py.schedule.model import Direction, Entry, Level, Schedule, Selector, Uses
from shardy_py.sharding.rule import FactorKind
from shardy_py.values import frozen


@frozen
class SweepOpKind:
    """The ops of one name.

    Args:
        name: The name.
        traits: The traits they have, by which a schedule may speak of them together with others; sorted by name.
        factor_kinds: The kinds of their factors.
    """

    name: str
    traits: tuple[Trait, ...]
    factor_kinds: tuple[FactorKind, ...]


def op_kinds(problem: Problem) -> tuple[SweepOpKind, ...]:
    """Return the kinds of ops of a program whose place in a schedule can make a difference, sorted by name.

    Ops without a rule, without factors, or whose direction is fixed have no place in a schedule.
    """
    traits: dict[str, set[Trait]] = {}
    kinds: dict[str, set[FactorKind]] = {}
    for group in problem.groups:
        if group.rule == NO_RULE or group.fixed is not None:
            continue
        rule = problem.outcomes.rules[group.rule]
        factor_kinds = {rule.kind(factor) for factor in range(rule.num_factors)}
        if factor_kinds:
            traits.setdefault(group.name, set()).update(group.traits)
            kinds.setdefault(group.name, set()).update(factor_kinds)
    selected = _selected_traits()
    return tuple(
        SweepOpKind(
            name,
            tuple(sorted(traits[name] & selected, key=str)),
            tuple(kind for kind in FactorKind if kind in kinds[name]),
        )
        for name in sorted(kinds)
    )


def _selected_traits() -> set[Trait]:
    """Return the traits that entries of the built-in schedules select; others say nothing about propagation."""
    selectors = [entry.selector for schedule in (DEFAULT, *BUILTIN.values()) for _, entry in schedule.entries]
    return {trait for selector in selectors for trait in (*selector.traits, *selector.excluded_traits)}


MAX_LEVELS = 6
"""The most levels before the last one."""

_TOGETHER = 0.5
"""Probability that the ops of a trait move as one."""
_ONE_KIND = 0.4
"""Probability that an entry selects one kind of factors only, where an op has several."""
_DIRECTIONS = (Direction.BOTH, Direction.BOTH, Direction.FORWARD, Direction.BACKWARD)
_USES: tuple[Uses, ...] = ("any", "any", "any", "single", "multiple")


def random_schedules(kinds: Iterable[SweepOpKind], count: int, *, seed: int = 0) -> tuple[NamedSchedule, ...]:
    """Return random schedules for a program.

    Each draws a number of levels, which traits move their ops together, and for each trait and each remaining op name
    a level, a direction, the kinds of factors, and the uses it speaks of. The last level is everything. Number ``i`` of
    a seed is the same however many are drawn.

    Args:
        kinds: The kinds of ops, see `op_kinds`.
        count: How many.
        seed: The seed that they are drawn from.
    """
    all_kinds = tuple(kinds)
    return tuple(NamedSchedule(f"random-{seed}-{i}", _draw(all_kinds, f"{seed}/{i}")) for i in range(count))


def choose_schedules(
    session: Session,
    schedules: Schedules | None = None,
    *,
    random: int = 0,
    seed: int = 0,
    drop_entries: bool = False,
) -> Sequence[NamedSchedule]:
    """Return the schedules of a comparison with their names; those that are given, then random ones.

    Args:
        session: The program.
        schedules: The schedules that are given, or names to schedules; the built-in ones by default.
        random: The number of random schedules to add.
        seed: The seed that they are drawn from.
        drop_entries: Whether to add each one that is given without each of its entries, one at a time.

    Raises:
        OptionError: there is none, one is not valid, or the number of random ones is negative.
    """
    if random < 0:
        raise OptionError(Diagnostic("invalid-random", f"random is {random}", hint="give a number from 0 on"))
    base_schedules = list(named_schedules(BUILTIN if schedules is None else schedules, session.registry))
    if drop_entries:
        prefixes = [f"{item.name} " if len(base_schedules) > 1 else "" for item in base_schedules]
        base_schedules += [
            reduced
            for item, prefix in zip(tuple(base_schedules), prefixes, strict=True)
            for reduced in without_entries(item, prefix)
        ]
    drawn = random_schedules(op_kinds(session.problem), random, seed=seed)
    chosen = named_schedules([*base_schedules, *drawn], session.registry)
    if not chosen:
        raise OptionError(Diagnostic("no-schedule", "there is no schedule to compare", hint="give one, or random=100"))
    return chosen


def _draw(kinds: Sequence[SweepOpKind], seed: str) -> Schedule:
    # Seeds that are texts are hashed by SHA-512, which does not depend on the process.
    random = Random(f"shardy ordering {seed}")
    levels: list[list[Entry]] = [[] for _ in range(random.randint(1, MAX_LEVELS))]
    for subject, factor_kinds in _subjects(kinds, random):
        entry = _entry(subject, factor_kinds, random)
        # One place more than there are levels: with everything that is left.
        place = random.randrange(len(levels) + 1)
        if place < len(levels):
            levels[place].append(entry)
    used = [tuple(entries) for entries in levels if entries]
    return Schedule((*(Level(f"level {i}", entries) for i, entries in enumerate(used)), EVERYTHING))


def _subjects(kinds: Sequence[SweepOpKind], random: Random) -> Iterator[tuple[str | Trait, tuple[FactorKind, ...]]]:
    """Yield the traits whose ops move together, then the names of the other ops, each with its kinds of factors."""
    traits = sorted({trait for kind in kinds for trait in kind.traits}, key=str)
    together = [trait for trait in traits if random.random() < _TOGETHER]
    for trait in together:
        factor_kinds = {item for kind in kinds if trait in kind.traits for item in kind.factor_kinds}
        yield trait, tuple(item for item in FactorKind if item in factor_kinds)
    for kind in kinds:
        if not any(trait in together for trait in kind.traits):
            yield kind.name, kind.factor_kinds


def _entry(subject: str | Trait, factor_kinds: tuple[FactorKind, ...], random: Random) -> Entry:
    direction, uses = random.choice(_DIRECTIONS), random.choice(_USES)
    # The numbers are drawn whether they are needed or not, so that one op's factors do not shift another op's draw.
    narrow, chosen = random.random() < _ONE_KIND, random.randrange(len(factor_kinds))
    only = (factor_kinds[chosen],) if narrow and len(factor_kinds) > 1 else ()
    if isinstance(subject, str):
        return Entry(Selector(names=(subject,), factor_kinds=only, uses=uses), direction)
    return Entry(Selector(traits=(subject,), factor_kinds=only, uses=uses), direction)
