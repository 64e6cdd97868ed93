"""The state of a plugin, with what it registers."""

from __future__ import annotations

from collections.abc import Iterable

from attrs import evolve

from shardy_py.errors import Diagnostic
from shardy_py.schedule.model import OpPriority
from shardy_py.values import frozen


@frozen
class PluginInfo:
    """State of one plugin: its origin, what it registers, its problems.

    Args:
        name: The name of its entry point, or the one it was given.
        origin: The distribution and version it comes from, or "".
        dialects: The names of its dialects.
        ops: The number of its op definitions.
        status: ``loaded``, ``blocked`` or ``broken``.
        problems: The reason why it is broken, or its ops and passes that others define, too.
        passes: The names of its passes.
        source: The file it was read from, or "".
        op_names: The names and globs it defines, sorted.
        traits: The names of the traits it gives by name, sorted.
        priorities: The op priorities of its ops.
        frontends: The names of its frontends.
        types: The names of the types it defines, sorted.
    """

    name: str
    origin: str = ""
    dialects: tuple[str, ...] = ()
    ops: int = 0
    status: str = "loaded"
    problems: tuple[Diagnostic, ...] = ()
    passes: tuple[str, ...] = ()
    source: str = ""
    op_names: tuple[str, ...] = ()
    traits: tuple[str, ...] = ()
    priorities: tuple[OpPriority, ...] = ()
    frontends: tuple[str, ...] = ()
    types: tuple[str, ...] = ()

    @property
    def owner(self) -> str:
        """The words that name the plugin in errors."""
        return f"plugin {self.name!r}" + (f" ({self.origin})" if self.origin else "")


def with_problems(info: PluginInfo, clashes: Iterable[tuple[list[str], Diagnostic]]) -> PluginInfo:
    """Return the state of a plugin with the clashes it is part of, in which the first owner's part is used."""
    problems = tuple(
        evolve(problem, hint=f"{problem.hint}; until then that of {owners[0]} is used")
        for owners, problem in clashes
        if any(f"{owner},".startswith(f"{info.owner},") for owner in owners)
    )
    return evolve(info, problems=info.problems + problems) if problems else info
