"""Make the schedule of a run from a value, a name or a file, and from the op priorities of users and plugins.

The ops that a user lists come before those of plugins, and these before the default schedule.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from pathlib import Path

from attrs import evolve

from shardy_py.errors import Diagnostic, OptionError, PluginError, with_article
from shardy_py.ir.graph.program import Op
from shardy_py.ir.interfaces.ops import Trait
from shardy_py.schedule.builtin import DEFAULT, NAMED, builtin_schedule
from shardy_py.schedule.model import Entry, Level, OpPriority, Schedule, Selector
from shardy_py.schedule.toml import read_schedule
from shardy_py.support.arguments import shown

ScheduleLike = Schedule | str | Path
"""A schedule, the name of a built-in one, or the path of a TOML file."""

Choice = str | Trait | Selector | Entry | Callable[[Op], bool]
"""Some ops: a name or a glob, a trait, a selector, one with a direction, or a function of the op."""

OpPriorities = Sequence[Choice | Sequence[Choice] | Level]
"""An ordered list of ops, those that propagate first first; ops in a list of their own propagate together."""

_HINT = 'give an ordered list, a list in it where ops come together: ["toy.matmul", ["toy.add", "toy.mul"]]'


def make_schedule(
    schedule: ScheduleLike | None = None,
    *,
    op_priorities: OpPriorities | None = None,
    plugin_priorities: Iterable[OpPriority] = (),
    plugin_traits: Iterable[str] = (),
) -> Schedule:
    """Return the schedule that runs.

    Args:
        schedule: A schedule, a name or a file; None for the default with the op priorities of the plugins.
        op_priorities: Ops that come before the schedule.
        plugin_priorities: The op priorities of the plugins.
        plugin_traits: The names of the plugins' own traits, which a file may name.

    Raises:
        OptionError: there is no such schedule.
        PluginError: a plugin names a level that does not exist.
    """
    rest = with_plugin_priorities(DEFAULT, plugin_priorities)
    base = rest if schedule is None else _given(schedule, rest, plugin_traits)
    return base if op_priorities is None else order_ops(op_priorities, rest=base)


def _given(schedule: ScheduleLike, rest: Schedule, more_traits: Iterable[str]) -> Schedule:
    if isinstance(schedule, Schedule):
        return schedule
    if isinstance(schedule, Path):
        return read_schedule(schedule, rest=rest, more_traits=more_traits)
    if not isinstance(schedule, str):
        message = f"{with_article(type(schedule).__name__)} is not a schedule"
        hint = "give a Schedule, the pathlib.Path of a TOML file, or the name of a built-in schedule"
        raise OptionError(Diagnostic("invalid-schedule", message, hint=hint))
    if schedule not in NAMED and schedule.endswith(".toml"):
        return read_schedule(schedule, rest=rest, more_traits=more_traits)
    return builtin_schedule(schedule)


def order_ops(op_priorities: OpPriorities, *, rest: Schedule = DEFAULT) -> Schedule:
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
    levels = tuple(_level(index, choice) for index, choice in enumerate(op_priorities))
    return evolve(rest, levels=(*levels, *rest.levels))


def with_plugin_priorities(schedule: Schedule, priorities: Iterable[OpPriority]) -> Schedule:
    """Return a schedule in which the op priorities of plugins replace its entries about their ops.

    Its last level is left as it is.

    Raises:
        PluginError: the schedule has no such level.
    """
    plugin_priorities = tuple(priorities)
    if not plugin_priorities:
        return schedule
    names = tuple(dict.fromkeys(name for item in plugin_priorities for name in item.entry.selector.names))
    last = len(schedule.levels) - 1
    for item in plugin_priorities:
        if item.level > last:
            message = f"{item.entry}: there is no level {item.level}"
            raise PluginError(Diagnostic("invalid-schedule", message, hint=f"the levels are 0 to {last}"))
    levels = []
    for index, level in enumerate(schedule.levels):
        remaining = level.entries if index == last else tuple(_without(entry, names) for entry in level.entries)
        added = tuple(item.entry for item in plugin_priorities if item.level == index)
        levels.append(Level(level.name, remaining + added))
    return evolve(schedule, levels=tuple(levels))


def _without(entry: Entry, names: tuple[str, ...]) -> Entry:
    selector = entry.selector
    return evolve(entry, selector=evolve(selector, excluded_names=selector.excluded_names + names))


def _level(index: int, choice: Choice | Sequence[Choice] | Level) -> Level:
    if isinstance(choice, Level):
        return choice
    is_one = isinstance(choice, (str, Trait, Selector, Entry)) or not isinstance(choice, Iterable)
    choices: list[Choice] = [choice] if is_one else list(choice)  # type: ignore[list-item, arg-type]
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
