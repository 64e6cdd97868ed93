"""Loading of plugins: find them, import them, call their hooks; a pluggy manager lives for one call only."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import pluggy
from attrs import evolve, field

from shardy_py.errors import Diagnostic, PluginError
from shardy_py.guards.error_texts import location_of
from shardy_py.ir.interfaces.frontend import Frontend
from shardy_py.ir.interfaces.passes import Pass
from shardy_py.plugins import hookspecs
from shardy_py.plugins.dialect import Dialect
from shardy_py.plugins.distributions import EntryPoint, entry_points
from shardy_py.plugins.hook_answers import (
    answers_of,
    check_frontends,
    check_marks,
    check_own_clashes,
    check_priorities,
    foreign_ops,
    guarded_priority,
    is_device,
    is_dialect,
    is_emitter,
    is_frontend,
    is_pass,
    is_priority,
    unknown_hook,
)
from shardy_py.plugins.load_errors import Candidate, blame, broken, located
from shardy_py.plugins.plugin_info import PluginInfo
from shardy_py.schedule.model import OpPriority
from shardy_py.support.arguments import shown
from shardy_py.support.identity import identity
from shardy_py.values import frozen

if TYPE_CHECKING:
    from shardy_py.ir.interfaces.emission import KernelEmitter

BUNDLED = "shardy_py"


@frozen
class _Answers:
    """Answers of one plugin to the hooks."""

    dialects: tuple[Dialect, ...]
    passes: tuple[type[Pass], ...]
    priorities: tuple[OpPriority, ...]
    frontends: tuple[Frontend, ...]
    emitters: tuple[KernelEmitter, ...]
    devices: tuple[Path, ...]
    source: str


@frozen
class LoadedPlugins:
    """Answers of all plugins, by plugin name, the bundled ones first.

    Args:
        dialects: The dialects with the words that name their owners.
        passes: The passes with theirs.
        frontends: The frontends with theirs.
        emitters: The emitters of kernels with theirs.
        devices: The files of device specs with theirs.
        infos: The state of each plugin.
    """

    dialects: list[tuple[str, Dialect]] = field(factory=list)
    passes: list[tuple[str, type[Pass]]] = field(factory=list)
    frontends: list[tuple[str, Frontend]] = field(factory=list)
    emitters: list[tuple[str, KernelEmitter]] = field(factory=list)
    devices: list[tuple[str, Path]] = field(factory=list)
    infos: list[PluginInfo] = field(factory=list)


def find_entry_points() -> list[EntryPoint]:
    """Return the entry points of all installed plugins, sorted."""
    return [item for item, _ in _installed()]


def load_plugins(
    *, plugins: Iterable[object] = (), blocked: Iterable[str] = (), skip_broken: bool = False
) -> LoadedPlugins:
    """Import all plugins and collect their dialects, passes and frontends.

    Args:
        plugins: More plugins besides the installed ones.
        blocked: Names of plugins that are not imported; unknown names have no effect.
        skip_broken: Whether a plugin that fails is reported in its info instead of raised.

    Raises:
        PluginError: plugins fail to import, have unknown hooks, or return something else; all are named.
    """
    for name, argument in (("plugins", plugins), ("blocked", blocked)):
        if isinstance(argument, str | bytes) or not isinstance(argument, Iterable):
            hint = f"{name}=[...]"
            raise PluginError(Diagnostic("invalid-plugins", f"{name} is {shown(argument)}, not a list", hint=hint))
    not_wanted = {name for name in blocked if isinstance(name, str)}
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
        info = evolve(_loaded(candidate, answers), problems=tuple(foreign_ops(candidate, answers.dialects)))
        loaded.dialects.extend((f"{info.owner}, dialect {dialect.name!r}", dialect) for dialect in answers.dialects)
        loaded.passes.extend((info.owner, class_) for class_ in answers.passes)
        loaded.frontends.extend((info.owner, item) for item in answers.frontends)
        loaded.emitters.extend((info.owner, item) for item in answers.emitters)
        loaded.devices.extend((info.owner, item) for item in answers.devices)
        infos.append(info)
    if problems and not skip_broken:
        raise PluginError(*problems)
    return loaded


def contributions(plugin: object) -> tuple[str, tuple[object, ...]]:
    """Return the name of a plugin with all objects that it contributes now: definitions, passes, frontends and so on.

    A module is among them, as it takes the place of its installed plugin.

    Raises:
        PluginError: the plugin has unknown hooks, or a hook fails or returns something else.
    """
    name = _name(plugin)
    answers = _ask(Candidate(name, "", partial(_same, plugin)))
    definitions = [(dialect, *dialect.definitions, *dialect.types) for dialect in answers.dialects]
    contributed = [*chain.from_iterable(definitions), *answers.passes, *answers.frontends, *answers.priorities]
    contributed += [*answers.emitters, *answers.devices]
    if isinstance(plugin, ModuleType):
        contributed.append(plugin)
    return f"{name} {answers.source}", tuple(contributed)


def create_manager() -> pluggy.PluginManager:
    """Return a plugin manager that knows the hooks and no plugin."""
    manager = pluggy.PluginManager(hookspecs.PROJECT)
    manager.add_hookspecs(hookspecs)
    return manager


def _candidates(plugins: Iterable[object]) -> list[Candidate]:
    """Return all plugins by name, the bundled ones first; a module takes the place of its installed plugin."""
    plugins = list(plugins)
    modules = [plugin for plugin in plugins if isinstance(plugin, ModuleType)]
    installed = [pair for pair in _installed() if not any(_is_module_of(module, pair[0]) for module in modules)]
    candidates = [Candidate(item.name, origin, item.load) for item, origin in installed]
    candidates += [Candidate(_name(plugin), "", partial(_same, plugin)) for plugin in plugins]
    return sorted(candidates, key=lambda item: (not _is_bundled(item), item.name, item.origin))


def _is_module_of(module: ModuleType, entry_point: EntryPoint) -> bool:
    """Return whether a module, perhaps of a file, is that of an installed plugin, or another version of it."""
    path = entry_point.value.partition(":")[0]
    *packages, name = path.split(".")
    if module.__name__ == path:
        return True
    if not packages or module.__name__.rpartition(".")[2] != name:
        return False
    try:
        spec = find_spec(path)
        return spec is not None and spec.origin is not None and Path(spec.origin).samefile(module.__file__ or "")
    except Exception:  # A parent package raises what it likes as it is imported: it is reported as a broken plugin.
        return False


def _is_bundled(candidate: Candidate) -> bool:
    return candidate.origin.replace("-", "_").split(" ")[0] == BUNDLED


def _duplicates(candidates: Iterable[Candidate]) -> dict[Candidate, Diagnostic]:
    """Return the plugins with the name of an earlier plugin, each with its diagnostic."""
    first: dict[str, Candidate] = {}
    duplicates = {}
    for item in candidates:
        other = first.setdefault(item.name, item)
        if other is not item:
            duplicates[item] = Diagnostic(
                "plugin-clash",
                f"two plugins are named {item.name!r}:"
                f" one from {other.origin or 'the caller'}, one from {item.origin or 'the caller'}",
                hint="uninstall one of them",
            )
    return duplicates


def _ask(candidate: Candidate) -> _Answers:
    """Import one plugin and call its hooks, in a manager of its own."""
    manager = create_manager()
    with blame(candidate):
        plugin = candidate.load()
    with located(plugin), blame(candidate):
        if isinstance(plugin, type):
            hint = f"give an object of it: {plugin.__name__}()"
            raise PluginError(broken(candidate, f"it is the class {plugin.__name__}, not an object", hint=hint))
        try:
            manager.register(plugin, candidate.name)
            manager.check_pending()
        except pluggy.PluginValidationError as error:
            raise PluginError(unknown_hook(candidate, plugin, error)) from error
        check_marks(candidate, plugin, manager)
        answers = _Answers(
            tuple(answers_of(candidate, manager, "shardy_register_dialects", "dialects", is_dialect)),
            tuple(answers_of(candidate, manager, "shardy_register_passes", "pass classes", is_pass)),
            tuple(answers_of(candidate, manager, "shardy_register_schedules", "op priorities", is_priority)),
            tuple(answers_of(candidate, manager, "shardy_register_frontends", "frontends", is_frontend)),
            tuple(answers_of(candidate, manager, "shardy_register_emitters", "emitters", is_emitter)),
            tuple(answers_of(candidate, manager, "shardy_register_devices", "paths of TOML files", is_device)),
            getattr(plugin, "__file__", None) or "",
        )
        check_frontends(candidate, answers.frontends)
        check_own_clashes(candidate, answers.dialects)
        location = location_of(getattr(plugin, "shardy_register_schedules", None))
        check_priorities(candidate, answers.priorities, answers.dialects, location=location)
    return evolve(answers, priorities=tuple(guarded_priority(candidate, item) for item in answers.priorities))


def _loaded(candidate: Candidate, answers: _Answers) -> PluginInfo:
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
        types=tuple(sorted(item.name for dialect in answers.dialects for item in dialect.types)),
    )


def _installed() -> list[tuple[EntryPoint, str]]:
    """Return the entry points of all installed plugins with their origins, sorted."""
    points = entry_points(group=hookspecs.ENTRY_POINT_GROUP)
    origins = _origins(points)
    pairs = [(item, origins[identity(item.dist)]) for item in points]
    return sorted(pairs, key=lambda pair: (pair[0].name, pair[0].value, pair[1]))


def _origins(points: Iterable[EntryPoint]) -> dict[int, str]:
    """Return name and version of the distributions of entry points, by identity."""
    distributions = {identity(item.dist): item.dist for item in points}
    return {key: f"{dist.name} {dist.version}" if dist else "" for key, dist in distributions.items()}


def _same(plugin: object) -> object:
    return plugin


def _name(plugin: object) -> str:
    name = getattr(plugin, "__shardy_name__", None) or getattr(plugin, "__name__", None)
    return name if isinstance(name, str) else type(plugin).__name__
