"""Names of ops in the orders that a caller gives, against the ops that there are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase

from shardy_py.errors import Diagnostic, did_you_mean
from shardy_py.ir.interfaces.ops import TRAITS
from shardy_py.plugins import Registry
from shardy_py.schedule.builtin import BUILTIN
from shardy_py.schedule.from_options import OpPriorities, ScheduleLike
from shardy_py.schedule.model import Level, Schedule


def unknown_op_names(
    levels: Schedule | None,
    *,
    schedule: ScheduleLike | None,
    op_priorities: OpPriorities | None,
    op_names: Iterable[str],
    registry: Registry,
) -> Iterator[Diagnostic]:
    """Yield a warning for each name and glob that matches no op, neither of the program nor of a dialect.

    Args:
        levels: The schedule that runs.
        schedule: The schedule as the caller gave it; the names of built-in ones are not checked.
        op_priorities: The op priorities as the caller gave them.
        op_names: The names of the ops of the program.
        registry: The definitions of ops.
    """
    if levels is None:
        return
    is_own = schedule is not None and not (isinstance(schedule, str) and schedule in BUILTIN)
    callers_levels = levels.levels if is_own else levels.levels[: len(op_priorities or ())]
    known = {*registry.ops, *op_names} if callers_levels else set()
    for name in dict.fromkeys(_names_in(callers_levels)):
        if name in known or any(fnmatchcase(other, name) for other in known):
            continue
        marker = next((trait for trait in TRAITS if trait.name == name), None)
        hint = f"a trait is given as a marker: sdy.{marker}" if marker else did_you_mean(name, known)
        yield Diagnostic("unknown-op", f"the order of ops names {name!r}, which is not an op", hint=hint)


def _names_in(levels: tuple[Level, ...]) -> Iterator[str]:
    for level in levels:
        for entry in level.entries:
            yield from entry.selector.names
