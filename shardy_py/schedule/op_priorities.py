"""Schedules made of op priorities: the lists of users and of plugins; users come before plugins, then the default."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set

from attrs import evolve

from shardy_py.errors import Diagnostic, OptionError, PluginError
from shardy_py.ir.graph.program import Op
from shardy_py.ir.interfaces.ops import Trait
from shardy_py.schedule.default import DEFAULT
from shardy_py.schedule.model import Entry, Level, OpPriority, Schedule, Selector
from shardy_py.support.arguments import shown

Choice = str | Trait | Selector | Entry | Callable[[Op], bool]
"""Some ops: a name or a glob, a trait, a selector, one with a direction, or a function of the op."""

_HINT = 'give an ordered list, a list in it where ops come together: ["toy.matmul", ["toy.add", "toy.mul"]]'


def order_ops(op_priorities: Sequence[Choice | Sequence[Choice] | Level], *, rest: Schedule = DEFAULT) -> Schedule:
    """Return the schedule that takes the given ops first, level by level, and then the rest.

    >>> print(order_ops([["toy.add", "toy.mul"], ["toy.matmul"]]).levels[0])
    given level 0:
      toy.add | toy.mul -> BOTH

    Args:
        op_priorities: A name, glob, trait, selector, entry or function per level, or a sequence of them.
        rest: The schedule of the ops that are not listed, in levels after the given ones.

    Raises:
        OptionError: a level is something else.
    """
    if isinstance(op_priorities, (str, Set, Mapping)) or not isinstance(op_priorities, Collection):
        message = f"op_priorities is {shown(op_priorities)}, not a list"
        raise OptionError(Diagnostic("invalid-schedule", message, hint=_HINT))
    levels = tuple(_level(index, given) for index, given in enumerate(op_priorities))
    return evolve(rest, levels=(*levels, *rest.levels))


def with_plugin_priorities(schedule: Schedule, priorities: Iterable[OpPriority]) -> Schedule:
    """Return a schedule in which the op priorities of plugins replace its entries about their ops.

    Its last level is left as it is.

    Raises:
        PluginError: the schedule has no such level.
    """
    given = tuple(priorities)
    if not given:
        return schedule
    names = tuple(dict.fromkeys(name for item in given for name in item.entry.selector.names))
    last = len(schedule.levels) - 1
    for item in given:
        if item.level > last:
            message = f"{item.entry}: there is no level {item.level}"
            raise PluginError(Diagnostic("invalid-schedule", message, hint=f"the levels are 0 to {last}"))
    levels = []
    for index, level in enumerate(schedule.levels):
        kept = level.entries if index == last else tuple(_without(entry, names) for entry in level.entries)
        added = tuple(item.entry for item in given if item.level == index)
        levels.append(Level(level.name, kept + added))
    return evolve(schedule, levels=tuple(levels))


def _without(entry: Entry, names: tuple[str, ...]) -> Entry:
    selector = entry.selector
    return evolve(entry, selector=evolve(selector, excluded_names=selector.excluded_names + names))


def _level(index: int, given: Choice | Sequence[Choice] | Level) -> Level:
    if isinstance(given, Level):
        return given
    is_one = isinstance(given, (str, Trait, Selector, Entry)) or not isinstance(given, Iterable)
    choices: list[Choice] = [given] if is_one else list(given)  # type: ignore[list-item, arg-type]
    names = tuple(item for item in choices if isinstance(item, str))
    traits = tuple(item for item in choices if isinstance(item, Trait))
    entries = [Entry(Selector(names=names, traits=traits))] if names or traits else []
    entries += [_entry(index, item) for item in choices if not isinstance(item, (str, Trait))]
    return Level(f"given level {index}", tuple(entries))


def _entry(index: int, item: Choice) -> Entry:
    if isinstance(item, Entry):
        return item
    if isinstance(item, Selector):
        return Entry(item)
    if callable(item):
        return Entry(Selector(predicate=item))
    raise OptionError(
        Diagnostic(
            "invalid-schedule",
            f"op_priorities: {shown(item)} in level {index} chooses no ops",
            hint="give op names, globs, traits, selectors, entries or functions of the op",
        )
    )
