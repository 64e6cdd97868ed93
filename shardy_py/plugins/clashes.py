"""Clashes: ops, passes, types and frontends that several plugins define."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from attrs import evolve

from shardy_py.errors import Diagnostic
from shardy_py.plugins.plugin_info import PluginInfo

_T = TypeVar("_T")


def first_of_each(
    claims: Iterable[tuple[str, str, _T]], clash: Callable[[str, list[str]], Diagnostic]
) -> tuple[dict[str, tuple[str, _T]], list[tuple[list[str], Diagnostic]]]:
    """Return the first owner and thing of each name, and a diagnostic for each name that several things have."""
    found: dict[str, list[tuple[str, _T]]] = {}
    for owner, name, thing in claims:
        others = found.get(name)
        if others is None:
            found[name] = [(owner, thing)]
        elif all(thing is not other for _, other in others):
            others.append((owner, thing))
    clashes = []
    for name in sorted(found):
        owners = [owner for owner, _ in found[name]]
        if len(owners) > 1:
            clashes.append((owners, clash(name, owners)))
    return {name: things[0] for name, things in found.items()}, clashes


def with_problems(info: PluginInfo, clashes: Iterable[tuple[list[str], Diagnostic]]) -> PluginInfo:
    """Return the state of a plugin with the clashes it is part of."""
    own = tuple(
        problem for owners, problem in clashes if any(f"{owner},".startswith(f"{info.owner},") for owner in owners)
    )
    return evolve(info, problems=info.problems + own) if own else info


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
