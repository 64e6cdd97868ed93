"""Finding, importing and asking plugins; a pluggy manager lives for one call only."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from importlib.metadata import EntryPoint, entry_points
from itertools import pairwise
from typing import Any

import pluggy
from attrs import frozen

from shardy_py.errors import Diagnostic, PluginError, ShardyError
from shardy_py.plugins import specs
from shardy_py.plugins.dialect import Dialect
from shardy_py.plugins.registry import PluginInfo

Owned = list[tuple[str, Dialect]]


@frozen
class _Candidate:
    """A plugin that is not imported yet."""

    name: str
    origin: str
    load: Callable[[], object]


def find_entry_points() -> list[EntryPoint]:
    """Return the entry points of all installed plugins, sorted."""
    found = entry_points(group=specs.ENTRY_POINT_GROUP)
    return sorted(found, key=lambda item: (item.name, item.value, _origin(item)))


def load_dialects(
    *, plugins: Iterable[object] = (), blocked: Iterable[str] = (), skip_broken: bool = False
) -> tuple[Owned, list[PluginInfo]]:
    """Import all plugins and ask them for their dialects.

    Args:
        plugins: More plugins besides the installed ones.
        blocked: Names of plugins that are not imported; unknown names have no effect.
        skip_broken: Whether a plugin that fails is reported in its info instead of raised.

    Returns:
        The dialects with the words that name their owners, and what became of each plugin, both by plugin name.

    Raises:
        PluginError: plugins fail to import, have unknown hooks, or return anything but dialects; all are named.
    """
    not_wanted = frozenset(blocked)
    owned: Owned = []
    infos: list[PluginInfo] = []
    problems: list[Diagnostic] = []
    for candidate in _candidates(plugins):
        if candidate.name in not_wanted:
            infos.append(PluginInfo(candidate.name, candidate.origin, status="blocked"))
            continue
        try:
            dialects = _ask(candidate)
        except PluginError as error:
            problems += error.diagnostics
            problem = error.diagnostics[0]
            infos.append(PluginInfo(candidate.name, candidate.origin, status="broken", problem=problem))
            continue
        owned += [(_owner(candidate, dialect), dialect) for dialect in dialects]
        infos.append(_loaded(candidate, dialects))
    if problems and not skip_broken:
        raise PluginError(*problems)
    return owned, infos


def create_manager() -> pluggy.PluginManager:
    """Return a plugin manager that knows the hooks and no plugin."""
    manager = pluggy.PluginManager(specs.PROJECT)
    manager.add_hookspecs(specs)
    return manager


def _candidates(plugins: Iterable[object]) -> list[_Candidate]:
    """Return all plugins by name.

    Raises:
        PluginError: two plugins have the same name.
    """
    candidates = [_Candidate(item.name, _origin(item), item.load) for item in find_entry_points()]
    candidates += [_Candidate(_name(plugin), "", partial(_same, plugin)) for plugin in plugins]
    candidates.sort(key=lambda item: (item.name, item.origin))
    for first, second in pairwise(candidates):
        if first.name == second.name:
            raise PluginError(
                Diagnostic(
                    "plugin-clash",
                    f"two plugins are named {first.name!r}:"
                    f" one from {first.origin or 'the caller'}, one from {second.origin or 'the caller'}",
                    hint="uninstall one of them",
                )
            )
    return candidates


def _ask(candidate: _Candidate) -> list[Dialect]:
    """Import one plugin and call its hooks, in a manager of its own so that its answers are known to be its own."""
    manager = create_manager()
    try:
        plugin = candidate.load()
        manager.register(plugin, candidate.name)
        manager.check_pending()
        answers = manager.hook.shardy_register_dialects()
    except pluggy.PluginValidationError as error:
        raise PluginError(_unknown_hook(candidate, error)) from error
    except ShardyError as error:
        message = "; ".join(item.message for item in error.diagnostics)
        raise PluginError(_broken(candidate, message)) from error
    except (Exception, SystemExit) as error:
        raise PluginError(_broken(candidate, f"{type(error).__name__}: {error}")) from error
    if not manager.get_hookcallers(plugin):
        raise PluginError(_broken(candidate, "it implements no hook", hint="decorate its functions with @hookimpl"))
    dialects: list[Dialect] = []
    for answer in answers:
        dialects += _checked(candidate, answer)
    return dialects


def _checked(candidate: _Candidate, answer: Any) -> list[Dialect]:
    if isinstance(answer, (list, tuple)) and all(isinstance(item, Dialect) for item in answer):
        return list(answer)
    raise PluginError(_broken(candidate, f"shardy_register_dialects returned {answer!r}, not a list of dialects"))


def _broken(candidate: _Candidate, reason: str, *, hint: str = "") -> Diagnostic:
    origin = f" from {candidate.origin}" if candidate.origin else ""
    return Diagnostic(
        "broken-plugin",
        f"plugin {candidate.name!r}{origin} cannot be loaded: {reason}",
        hint=hint or f"block it by its name {candidate.name!r}, or uninstall it",
    )


def _unknown_hook(candidate: _Candidate, error: pluggy.PluginValidationError) -> Diagnostic:
    known = ", ".join(sorted(name for name in vars(specs) if name.startswith("shardy_")))
    return Diagnostic(
        "invalid-hook",
        f"plugin {candidate.name!r} implements a hook that does not exist or has other parameters:"
        f" {str(error).strip().splitlines()[-1].split(' in plugin ')[0]}",
        hint=f"the hooks are {known}",
    )


def _loaded(candidate: _Candidate, dialects: list[Dialect]) -> PluginInfo:
    return PluginInfo(
        candidate.name,
        candidate.origin,
        tuple(dialect.name for dialect in dialects),
        sum(len(dialect.definitions) for dialect in dialects),
    )


def _owner(candidate: _Candidate, dialect: Dialect) -> str:
    origin = f" ({candidate.origin})" if candidate.origin else ""
    return f"plugin {candidate.name!r}{origin}, dialect {dialect.name!r}"


def _origin(item: EntryPoint) -> str:
    return f"{item.dist.name} {item.dist.version}" if item.dist else ""


def _same(plugin: object) -> object:
    return plugin


def _name(plugin: object) -> str:
    return getattr(plugin, "__name__", None) or type(plugin).__name__
