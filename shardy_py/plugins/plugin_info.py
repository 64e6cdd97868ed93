"""The state of a plugin, with what it registers, and clashes between plugins that define the same."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

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


_T = TypeVar("_T")


def first_of_each(
    claims: Iterable[tuple[str, str, _T]], clash: Callable[[str, list[str]], Diagnostic]
) -> tuple[dict[str, tuple[str, _T]], list[tuple[list[str], Diagnostic]]]:
    """Return the first owner and value of each name, and a diagnostic for each name with several values."""
    by_name: dict[str, list[tuple[str, _T]]] = {}
    for owner, name, thing in claims:
        others = by_name.get(name)
        if others is None:
            by_name[name] = [(owner, thing)]
        elif all(thing is not other for _, other in others):
            others.append((owner, thing))
    clashes = []
    for name in sorted(by_name):
        owners = [owner for owner, _ in by_name[name]]
        if len(owners) > 1:
            clashes.append((owners, clash(name, owners)))
    return {name: things[0] for name, things in by_name.items()}, clashes


def with_problems(info: PluginInfo, clashes: Iterable[tuple[list[str], Diagnostic]]) -> PluginInfo:
    """Return the state of a plugin with the clashes it is part of."""
    problems = tuple(
        problem for owners, problem in clashes if any(f"{owner},".startswith(f"{info.owner},") for owner in owners)
    )
    return evolve(info, problems=info.problems + problems) if problems else info


def clash(name: str, owners: list[str]) -> Diagnostic:
    """Return the diagnostic for an op that several plugins define."""
    return Diagnostic(
        "op-clash",
        f"the op is defined by {' and by '.join(sorted(owners))}",
        op=name,
        hint="block one of the plugins by its name, or uninstall it",
    )


def pass_clash(name: str, owners: list[str]) -> Diagnostic:
    """Return the diagnostic for a pass that several plugins define."""
    message = f"the pass {name!r} is defined by {' and by '.join(owners)}"
    return Diagnostic("pass-clash", message, hint="block one of the plugins by its name, or uninstall it")


def type_clash(name: str, owners: list[str]) -> Diagnostic:
    """Return the diagnostic for a type that several plugins define."""
    message = f"the type {name} is defined by {' and by '.join(owners)}"
    return Diagnostic("type-clash", message, hint="block one of the plugins by its name, or uninstall it")


def kernel_part_clash(name: str, owners: list[str]) -> Diagnostic:
    """Return the diagnostic for an emitter or a device spec that several plugins define."""
    message = f"{name} is defined by {' and by '.join(owners)}"
    return Diagnostic("kernel-part-clash", message, hint="block one of the plugins by its name, or uninstall it")


def frontend_clash(name: str, owners: list[str]) -> Diagnostic:
    """Return the diagnostic for a frontend that several plugins define."""
    message = f"the frontend {name!r} is defined by {' and by '.join(owners)}"
    return Diagnostic("frontend-clash", message, hint="block one of the plugins by its name, or uninstall it")
