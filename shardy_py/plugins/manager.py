"""Finding, importing and asking plugins; a pluggy manager lives for one call only."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from importlib.metadata import EntryPoint, entry_points
from itertools import pairwise
from typing import Any

import pluggy
from attrs import frozen

from shardy_py.errors import Diagnostic, PluginError, ShardyError
from shardy_py.ir.passes import Pass
from shardy_py.plugins import specs
from shardy_py.plugins.dialect import Dialect
from shardy_py.plugins.registry import PluginInfo

Owned = list[tuple[str, Dialect]]
OwnedPasses = list[tuple[str, type[Pass]]]


@frozen
class _Candidate:
    """A plugin that is not imported yet."""

    name: str
    origin: str
    load: Callable[[], object]


@frozen
class _Answers:
    """What one plugin contributes."""

    dialects: tuple[Dialect, ...]
    passes: tuple[type[Pass], ...]


def find_entry_points() -> list[EntryPoint]:
    """Return the entry points of all installed plugins, sorted."""
    found = entry_points(group=specs.ENTRY_POINT_GROUP)
    return sorted(found, key=lambda item: (item.name, item.value, _origin(item)))


def load_plugins(
    *, plugins: Iterable[object] = (), blocked: Iterable[str] = (), skip_broken: bool = False
) -> tuple[Owned, OwnedPasses, list[PluginInfo]]:
    """Import all plugins and ask them for their dialects and passes.

    Args:
        plugins: More plugins besides the installed ones.
        blocked: Names of plugins that are not imported; unknown names have no effect.
        skip_broken: Whether a plugin that fails is reported in its info instead of raised.

    Returns:
        The dialects and the passes with the words that name their owners, and what became of each plugin, all by
        plugin name.

    Raises:
        PluginError: plugins fail to import, have unknown hooks, or return something else; all are named.
    """
    not_wanted = frozenset(blocked)
    owned: Owned = []
    passes: OwnedPasses = []
    infos: list[PluginInfo] = []
    problems: list[Diagnostic] = []
    for candidate in _candidates(plugins):
        if candidate.name in not_wanted:
            infos.append(PluginInfo(candidate.name, candidate.origin, status="blocked"))
            continue
        try:
            answers = _ask(candidate)
        except PluginError as error:
            problems += error.diagnostics
            problem = error.diagnostics[0]
            infos.append(PluginInfo(candidate.name, candidate.origin, status="broken", problem=problem))
            continue
        owned += [(f"{_owner(candidate)}, dialect {dialect.name!r}", dialect) for dialect in answers.dialects]
        passes += [(_owner(candidate), class_) for class_ in answers.passes]
        infos.append(_loaded(candidate, answers))
    if problems and not skip_broken:
        raise PluginError(*problems)
    return owned, passes, infos


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


def _ask(candidate: _Candidate) -> _Answers:
    """Import one plugin and call its hooks, in a manager of its own so that its answers are known to be its own."""
    manager = create_manager()
    try:
        plugin = candidate.load()
        manager.register(plugin, candidate.name)
        manager.check_pending()
        dialects = manager.hook.shardy_register_dialects()
        passes = manager.hook.shardy_register_passes()
    except pluggy.PluginValidationError as error:
        raise PluginError(_unknown_hook(candidate, error)) from error
    except ShardyError as error:
        message = "; ".join(item.message for item in error.diagnostics)
        raise PluginError(_broken(candidate, message)) from error
    except (Exception, SystemExit) as error:
        raise PluginError(_broken(candidate, f"{type(error).__name__}: {error}")) from error
    if not manager.get_hookcallers(plugin):
        raise PluginError(_broken(candidate, "it implements no hook", hint="decorate its functions with @hookimpl"))
    return _Answers(
        tuple(_checked(candidate, dialects, "shardy_register_dialects", "dialects", _is_dialect)),
        tuple(_checked(candidate, passes, "shardy_register_passes", "pass classes", _is_pass)),
    )


def _checked(
    candidate: _Candidate, answers: Iterable[Any], hook: str, wanted: str, accept: Callable[[Any], bool]
) -> Iterator[Any]:
    for answer in answers:
        if not isinstance(answer, (list, tuple)) or not all(accept(item) for item in answer):
            raise PluginError(_broken(candidate, f"{hook} returned {answer!r}, not a list of {wanted}"))
        yield from answer


def _is_dialect(item: Any) -> bool:
    return isinstance(item, Dialect)


def _is_pass(item: Any) -> bool:
    return isinstance(item, type) and isinstance(getattr(item, "name", None), str) and hasattr(item, "run")


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


def _loaded(candidate: _Candidate, answers: _Answers) -> PluginInfo:
    return PluginInfo(
        candidate.name,
        candidate.origin,
        tuple(dialect.name for dialect in answers.dialects),
        sum(len(dialect.definitions) for dialect in answers.dialects),
        passes=tuple(class_.name for class_ in answers.passes),
    )


def _owner(candidate: _Candidate) -> str:
    origin = f" ({candidate.origin})" if candidate.origin else ""
    return f"plugin {candidate.name!r}{origin}"


def _origin(item: EntryPoint) -> str:
    return f"{item.dist.name} {item.dist.version}" if item.dist else ""


def _same(plugin: object) -> object:
    return plugin


def _name(plugin: object) -> str:
    return getattr(plugin, "__name__", None) or type(plugin).__name__
