"""Kinds of ops that a schedule can put in order, with their traits and the kinds of their factors."""

from __future__ import annotations

from shardy_py.ir.interfaces.ops import Trait
from shardy_py.propagation.problem import NO_RULE, Problem
from shardy_py.schedule.builtin import BUILTIN, DEFAULT
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
        found = {rule.kind(factor) for factor in range(rule.num_factors)}
        if found:
            traits.setdefault(group.name, set()).update(group.traits)
            kinds.setdefault(group.name, set()).update(found)
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
