"""Finding, importing and asking plugins; a pluggy manager lives for one call only."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from importlib.metadata import EntryPoint, entry_points
from typing import Any

import pluggy
from attrs import evolve, field, frozen

from shardy_py.errors import Diagnostic, PluginError, ShardyError
from shardy_py.ir.frontend import BUNDLED_NAMES, Frontend
from shardy_py.ir.passes import Pass
from shardy_py.ir.schedule import OpPriority
from shardy_py.plugins import specs
from shardy_py.plugins.clashes import PluginInfo
from shardy_py.plugins.dialect import Dialect

BUNDLED = "shardy_py"


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
    priorities: tuple[OpPriority, ...]
    frontends: tuple[Frontend, ...]
    source: str


@frozen
class LoadedPlugins:
    """What all plugins contribute, by plugin name, but the bundled ones first.

    Args:
        dialects: The dialects with the words that name their owners.
        passes: The passes with theirs.
        frontends: The frontends with theirs.
        infos: What became of each plugin.
    """

    dialects: list[tuple[str, Dialect]] = field(factory=list)
    passes: list[tuple[str, type[Pass]]] = field(factory=list)
    frontends: list[tuple[str, Frontend]] = field(factory=list)
    infos: list[PluginInfo] = field(factory=list)


def find_entry_points() -> list[EntryPoint]:
    """Return the entry points of all installed plugins, sorted."""
    found = entry_points(group=specs.ENTRY_POINT_GROUP)
    return sorted(found, key=lambda item: (item.name, item.value, _origin(item)))


def load_plugins(
    *, plugins: Iterable[object] = (), blocked: Iterable[str] = (), skip_broken: bool = False
) -> LoadedPlugins:
    """Import all plugins and ask them for their dialects, passes and frontends.

    Args:
        plugins: More plugins besides the installed ones.
        blocked: Names of plugins that are not imported; unknown names have no effect.
        skip_broken: Whether a plugin that fails is reported in its info instead of raised.

    Raises:
        PluginError: plugins fail to import, have unknown hooks, or return something else; all are named.
    """
    not_wanted = frozenset(blocked)
    loaded = LoadedPlugins()
    infos = loaded.infos
    problems: list[Diagnostic] = []
    candidates = _candidates(plugins)
    duplicates = _duplicates(candidates)
    for candidate in candidates:
        if candidate.name in not_wanted:
            infos.append(PluginInfo(candidate.name, candidate.origin, status="blocked"))
            continue
        if candidate in duplicates:
            problems.append(duplicates[candidate])
            infos.append(PluginInfo(candidate.name, candidate.origin, status="broken", problems=(problems[-1],)))
            continue
        try:
            answers = _ask(candidate)
        except PluginError as error:
            problems += error.diagnostics
            infos.append(PluginInfo(candidate.name, candidate.origin, status="broken", problems=error.diagnostics))
            continue
        info = _loaded(candidate, answers)
        loaded.dialects.extend((f"{info.owner}, dialect {dialect.name!r}", dialect) for dialect in answers.dialects)
        loaded.passes.extend((info.owner, class_) for class_ in answers.passes)
        loaded.frontends.extend((info.owner, item) for item in answers.frontends)
        infos.append(info)
    if problems and not skip_broken:
        raise PluginError(*problems)
    return loaded


def create_manager() -> pluggy.PluginManager:
    """Return a plugin manager that knows the hooks and no plugin."""
    manager = pluggy.PluginManager(specs.PROJECT)
    manager.add_hookspecs(specs)
    return manager


def _candidates(plugins: Iterable[object]) -> list[_Candidate]:
    """Return all plugins by name, the bundled ones first."""
    candidates = [_Candidate(item.name, _origin(item), item.load) for item in find_entry_points()]
    candidates += [_Candidate(_name(plugin), "", partial(_same, plugin)) for plugin in plugins]
    return sorted(candidates, key=lambda item: (not _is_bundled(item), item.name, item.origin))


def _is_bundled(candidate: _Candidate) -> bool:
    return candidate.origin.replace("-", "_").split(" ")[0] == BUNDLED


def _duplicates(candidates: Iterable[_Candidate]) -> dict[_Candidate, Diagnostic]:
    """Return the plugins whose name an earlier one has, each with what is to be said about it."""
    first: dict[str, _Candidate] = {}
    found = {}
    for item in candidates:
        other = first.setdefault(item.name, item)
        if other is not item:
            found[item] = Diagnostic(
                "plugin-clash",
                f"two plugins are named {item.name!r}:"
                f" one from {other.origin or 'the caller'}, one from {item.origin or 'the caller'}",
                hint="uninstall one of them",
            )
    return found


def _ask(candidate: _Candidate) -> _Answers:
    """Import one plugin and call its hooks, in a manager of its own so that its answers are known to be its own."""
    manager = create_manager()
    try:
        plugin = candidate.load()
        manager.register(plugin, candidate.name)
        manager.check_pending()
        dialects = manager.hook.shardy_register_dialects()
        passes = manager.hook.shardy_register_passes()
        priorities = manager.hook.shardy_register_schedules()
        frontends = manager.hook.shardy_register_frontends()
    except pluggy.PluginValidationError as error:
        raise PluginError(_unknown_hook(candidate, error)) from error
    except ShardyError as error:
        message = "; ".join(
            f"'{item.op}' op: {item.message}" if item.op else item.message for item in error.diagnostics
        )
        raise PluginError(evolve(_broken(candidate, message), excerpt=error.diagnostics[0].excerpt)) from error
    except (Exception, SystemExit) as error:
        raise PluginError(_broken(candidate, f"{type(error).__name__}: {error}")) from error
    if not manager.get_hookcallers(plugin):
        raise PluginError(_broken(candidate, "it implements no hook", hint="decorate its functions with @hookimpl"))
    answers = _Answers(
        tuple(_checked(candidate, dialects, "shardy_register_dialects", "dialects", _is_dialect)),
        tuple(_checked(candidate, passes, "shardy_register_passes", "pass classes", _is_pass)),
        tuple(_checked(candidate, priorities, "shardy_register_schedules", "op priorities", _is_priority)),
        tuple(_checked(candidate, frontends, "shardy_register_frontends", "frontends", _is_frontend)),
        getattr(plugin, "__file__", None) or "",
    )
    _check_priorities(candidate, answers)
    _check_frontends(candidate, answers)
    return answers


def _check_priorities(candidate: _Candidate, answers: _Answers) -> None:
    """Check that a plugin gives priorities to its own ops only."""
    spaces = {item.name.split(".")[0] for dialect in answers.dialects for item in dialect.definitions}
    for priority in answers.priorities:
        selector = priority.entry.selector
        if not selector.names or selector.traits:
            reason = f"{priority} does not choose its ops by names only"
            raise PluginError(_broken(candidate, reason, hint="give the names, or globs, of ops of the plugin"))
        foreign = [name for name in selector.names if name.split(".")[0] not in spaces]
        if foreign:
            reason = f"{priority} speaks of {foreign[0]}, which is no op of the plugin"
            raise PluginError(_broken(candidate, reason, hint="a plugin gives priorities to its own ops only"))


def _check_frontends(candidate: _Candidate, answers: _Answers) -> None:
    """Check that the frontends of a plugin have names of their own and all methods."""
    for frontend in answers.frontends:
        if frontend.name in BUNDLED_NAMES:
            reason = f"its frontend is named {frontend.name!r}, as one of this package"
            raise PluginError(_broken(candidate, reason, hint="give it another name"))
        methods = [name for name, item in vars(Frontend).items() if callable(item) and not name.startswith("_")]
        missing = [name for name in methods if not callable(getattr(frontend, name, None))]
        if missing:
            reason = f"its frontend {frontend.name!r} has no {' and no '.join(missing)}"
            raise PluginError(_broken(candidate, reason, hint="derive its class from Frontend, which has defaults"))


def _checked(
    candidate: _Candidate, answers: Iterable[Any], hook: str, wanted: str, accept: Callable[[Any], bool]
) -> Iterator[Any]:
    for answer in answers:
        if not isinstance(answer, (list, tuple)) or not all(accept(item) for item in answer):
            shown = f"a {type(answer).__name__}" if accept(answer) else f"{answer!r}"
            hint = "return [...]" if accept(answer) else ""
            raise PluginError(_broken(candidate, f"{hook} returned {shown}, not a list of {wanted}", hint=hint))
        yield from answer


def _is_dialect(item: Any) -> bool:
    return isinstance(item, Dialect)


def _is_priority(item: Any) -> bool:
    return isinstance(item, OpPriority)


def _is_frontend(item: Any) -> bool:
    return not isinstance(item, type) and isinstance(getattr(item, "name", None), str) and hasattr(item, "accepts")


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
    definitions = [item for dialect in answers.dialects for item in dialect.definitions]
    return PluginInfo(
        candidate.name,
        candidate.origin,
        tuple(dialect.name for dialect in answers.dialects),
        len(definitions),
        passes=tuple(class_.name for class_ in answers.passes),
        source=answers.source,
        op_names=tuple(sorted(item.name for item in definitions)),
        traits=tuple(sorted({trait.name for item in definitions for trait in item.traits})),
        priorities=answers.priorities,
        frontends=tuple(item.name for item in answers.frontends),
    )


def _origin(item: EntryPoint) -> str:
    return f"{item.dist.name} {item.dist.version}" if item.dist else ""


def _same(plugin: object) -> object:
    return plugin


def _name(plugin: object) -> str:
    return getattr(plugin, "__name__", None) or type(plugin).__name__
