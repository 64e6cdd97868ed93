"""The schedule of a run, made of the forms in which callers give one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from shardy_py.errors import Diagnostic, OptionError
from shardy_py.schedule.builtin import NAMED, builtin_schedule
from shardy_py.schedule.default import DEFAULT
from shardy_py.schedule.model import Level, OpPriority, Schedule
from shardy_py.schedule.op_priorities import Choice, order_ops, with_plugin_priorities
from shardy_py.schedule.toml import read_schedule

ScheduleLike = Schedule | str | Path
"""A schedule, the name of a built-in one, or the path of a TOML file."""

OpPriorities = Sequence[Choice | Sequence[Choice] | Level]
"""An ordered list of ops, those that propagate first first; ops in a list of their own propagate together."""


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
    found = rest if schedule is None else _given(schedule, rest, plugin_traits)
    return found if op_priorities is None else order_ops(op_priorities, rest=found)


def _given(schedule: ScheduleLike, rest: Schedule, more_traits: Iterable[str]) -> Schedule:
    if isinstance(schedule, Schedule):
        return schedule
    if isinstance(schedule, Path):
        return read_schedule(schedule, rest=rest, more_traits=more_traits)
    if not isinstance(schedule, str):
        message = f"a {type(schedule).__name__} is not a schedule"
        hint = "give a Schedule, the pathlib.Path of a TOML file, or the name of a built-in schedule"
        raise OptionError(Diagnostic("invalid-schedule", message, hint=hint))
    if schedule not in NAMED and schedule.endswith(".toml"):
        return read_schedule(schedule, rest=rest, more_traits=more_traits)
    return builtin_schedule(schedule)
