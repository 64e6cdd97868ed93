"""Merged parts of all plugins: what several plugins define belongs to the first one, and is reported."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from shardy_py.errors import Diagnostic
from shardy_py.ir.interfaces.frontend import Frontend
from shardy_py.ir.interfaces.passes import Pass
from shardy_py.plugins.dialect import Dialect

if TYPE_CHECKING:
    from shardy_py.ir.interfaces.emission import KernelEmitter
    from shardy_py.plugins.guarded_frontend import GuardedEmitter, GuardedFrontend

_T = TypeVar("_T")


def merge_parts(
    owned: Sequence[tuple[str, Dialect]],
    passes: Iterable[tuple[str, type[Pass]]],
    frontends: Iterable[tuple[str, Frontend]],
    emitters: Iterable[tuple[str, KernelEmitter]],
    devices: Iterable[tuple[str, Path]],
) -> tuple[dict[str, Any], list[tuple[list[str], Diagnostic]]]:
    """Return the fields of a `Registry` that hold the parts of plugins, and the parts that several plugins define.

    Args:
        owned: The dialects with their owners.
        passes: The passes with their owners.
        frontends: The frontends with their owners.
        emitters: The emitters of kernels with their owners.
        devices: The files of device specs with their owners.

    Returns:
        The fields, each sorted by name, and for each part that several plugins define its owners, with a diagnostic.
    """
    definitions, op_clashes = _first_of_each(
        [(owner, item.key, item) for owner, dialect in owned for item in dialect.definitions], _op_clash
    )
    types, type_clashes = _first_of_each(
        [(owner, item.name, item) for owner, dialect in owned for item in dialect.types], _type_clash
    )
    classes, pass_clashes = _first_of_each([(owner, class_.name, class_) for owner, class_ in passes], _pass_clash)
    guarded_frontends, frontend_clashes = _first_of_each(
        [(owner, item.name, _guard_frontend(item, owner)) for owner, item in frontends], _frontend_clash
    )
    guarded_emitters, emitter_clashes = _first_of_each(
        [(owner, item.name, _guard_emitter(item, owner)) for owner, item in emitters],
        lambda name, owners: _kernel_part_clash(f"the emitter {name!r}", owners),
    )
    files, device_clashes = _first_of_each(
        [(owner, path.stem, path) for owner, path in devices],
        lambda name, owners: _kernel_part_clash(f"the device {name!r}", owners),
    )
    by_pass = _sorted_parts(classes)
    parts = {
        "definitions": tuple(_sorted_parts(definitions).values()),
        "owners": _sorted_owners(definitions),
        "passes": {name: class_ for name, class_ in by_pass.items() if not _is_of_kernels(class_)},
        "kernel_passes": {name: class_ for name, class_ in by_pass.items() if _is_of_kernels(class_)},
        "emitters": _sorted_parts(guarded_emitters),
        "devices": _sorted_parts(files),
        "frontends": _sorted_parts(guarded_frontends),
        "types": _sorted_parts(types),
        "type_owners": _sorted_owners(types),
        "local_ops": {item.name: item.local_ops for _, item in owned if item.local_ops is not None},
    }
    clashes = [*op_clashes, *pass_clashes, *frontend_clashes, *type_clashes, *emitter_clashes, *device_clashes]
    return parts, clashes


def _sorted_parts(owned: dict[str, tuple[str, Any]]) -> dict[str, Any]:
    return {name: owned[name][1] for name in sorted(owned)}


def _sorted_owners(owned: dict[str, tuple[str, Any]]) -> dict[str, str]:
    return {name: owned[name][0] for name in sorted(owned)}


def _is_of_kernels(class_: type[Any]) -> bool:
    return bool(getattr(class_, "of_kernels", False))


def _guard_frontend(frontend: Frontend, owner: str) -> GuardedFrontend:
    from shardy_py.plugins.guarded_frontend import GuardedFrontend

    return GuardedFrontend(frontend, owner)


def _guard_emitter(emitter: KernelEmitter, owner: str) -> GuardedEmitter:
    from shardy_py.plugins.guarded_frontend import GuardedEmitter

    return GuardedEmitter(emitter, owner)


def _first_of_each(
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


def _op_clash(name: str, owners: list[str]) -> Diagnostic:
    """Return the diagnostic for an op that several plugins define."""
    return Diagnostic(
        "op-clash",
        f"the op is defined by {' and by '.join(sorted(owners))}",
        op=name,
        hint="block one of the plugins by its name, or uninstall it",
    )


def _pass_clash(name: str, owners: list[str]) -> Diagnostic:
    """Return the diagnostic for a pass that several plugins define."""
    message = f"the pass {name!r} is defined by {' and by '.join(owners)}"
    return Diagnostic("pass-clash", message, hint="block one of the plugins by its name, or uninstall it")


def _type_clash(name: str, owners: list[str]) -> Diagnostic:
    """Return the diagnostic for a type that several plugins define."""
    message = f"the type {name} is defined by {' and by '.join(owners)}"
    return Diagnostic("type-clash", message, hint="block one of the plugins by its name, or uninstall it")


def _kernel_part_clash(name: str, owners: list[str]) -> Diagnostic:
    """Return the diagnostic for an emitter or a device spec that several plugins define."""
    message = f"{name} is defined by {' and by '.join(owners)}"
    return Diagnostic("kernel-part-clash", message, hint="block one of the plugins by its name, or uninstall it")


def _frontend_clash(name: str, owners: list[str]) -> Diagnostic:
    """Return the diagnostic for a frontend that several plugins define."""
    message = f"the frontend {name!r} is defined by {' and by '.join(owners)}"
    return Diagnostic("frontend-clash", message, hint="block one of the plugins by its name, or uninstall it")
