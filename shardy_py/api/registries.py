"""The registry of a run: installed and given plugins, with checks of the passes and levels that they name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from attrs import evolve

from shardy_py.errors import Diagnostic, OptionError, PluginError, ShardyError, did_you_mean, unknown_name
from shardy_py.guards.error_texts import location_of, shown
from shardy_py.guards.guard import Guard
from shardy_py.ir.graph.op_names import CALL, RESHARD
from shardy_py.plugins import PluginInfo, Registry, RuleOptions
from shardy_py.plugins.installed import given_registry, installed_registry
from shardy_py.schedule.builtin import DEFAULT
from shardy_py.schedule.model import OpPriority
from shardy_py.transforms.pass_names import bundled_passes
from shardy_py.transforms.plugin_passes import RUNS_BESIDE


def load_registry(
    *,
    options: RuleOptions,
    plugins: Iterable[object] = (),
    blocked: Iterable[str] = (),
    strict_plugins: bool = False,
) -> Registry:
    """Return the registry of the installed plugins and of those that are given.

    Args:
        options: What rules depend on besides their op.
        plugins: More plugins: modules or objects with hook implementations. A problem of one of them is an error.
        blocked: Names of plugins that are not imported.
        strict_plugins: Whether problems of installed plugins are errors, too; otherwise they are in the registry.

    Raises:
        PluginError: a given plugin is broken, or with ``strict_plugins`` anything is wrong.
        OptionError: the plugins are no list, or one that is blocked does not exist.
    """
    objects, blocked_names = check_given(plugins), check_names(blocked)
    if not objects and not blocked_names:
        return check_plugins(installed_registry(options=options, skip_broken=not strict_plugins), strict=strict_plugins)
    registry = given_registry(objects, blocked=blocked_names, options=options, skip_broken=not strict_plugins)
    check_blocked(registry, blocked_names)
    return check_plugins(registry, strict=strict_plugins)


_RESERVED = frozenset(("h", "help", "o", "pass-pipeline", "split-input-file", "verify-diagnostics"))
"""Names of the flags of ``shardy-opt`` besides passes."""


def check_plugins(registry: Registry, *, strict: bool) -> Registry:
    """Return a registry without invalid passes and priorities; `Registry.problems` lists those left out.

    Args:
        registry: The registry.
        strict: Whether all problems of plugins are errors.

    Raises:
        PluginError: a plugin that the caller gave has such passes or priorities, or with ``strict`` any problem.
    """
    if not strict and all(map(_is_bundled, registry.plugins)):
        return registry
    infos = [_checked(info, registry) for info in registry.plugins]
    without_origin = [info for info in infos if not info.origin]
    wrong = [
        item for info in without_origin for item in info.problems if info.status == "broken" or item.code in _FATAL
    ]
    if wrong:
        raise PluginError(*dict.fromkeys(wrong))
    if any(new is not old for new, old in zip(infos, registry.plugins, strict=True)):
        pass_names = {name for info in infos for name in info.passes}
        passes = {name: class_ for name, class_ in registry.passes.items() if name in pass_names}
        registry = evolve(registry, plugins=tuple(infos), passes=passes)
    if strict and registry.problems:
        raise PluginError(*registry.problems)
    return registry


def _is_bundled(info: PluginInfo) -> bool:
    return info.status == "loaded" and info.origin.startswith(("shardy_py ", "shardy-py "))


_FATAL = frozenset(("pass-clash", "unknown-pass", "invalid-pass", "invalid-schedule"))


_NEEDED = {"func": CALL, "sdy": RESHARD}
"""Name of a plugin that every program needs to one of its ops."""


def check_blocked(registry: Registry, blocked: tuple[str, ...]) -> None:
    """Check that the plugins that are to be blocked exist.

    Raises:
        OptionError: there is no plugin of that name, or no program goes without it.
    """
    for name, op in _NEEDED.items():
        if name in blocked and registry.find(op) is None:
            message = f"the plugin {name!r} cannot be left out: programs of every dialect have its ops"
            hint = f"give another plugin that defines {op} and the others"
            raise OptionError(Diagnostic("needed-plugin", message, hint=hint))
    known = [info.name for info in registry.plugins]
    problems = [
        unknown_name("unknown-plugin", f"there is no plugin {shown(name)} to block", str(name), known)
        for name in blocked
        if name not in known
    ]
    if problems:
        raise OptionError(*problems)


def check_names(blocked: Iterable[str]) -> tuple[str, ...]:
    """Return the names of plugins that a caller blocks.

    Raises:
        OptionError: something is not a name.
    """
    names = (blocked,) if isinstance(blocked, str) else tuple(blocked)
    for name in names:
        if not isinstance(name, str):
            message = f"blocked has {shown(name)}, which is not a plugin name"
            raise OptionError(Diagnostic("invalid-argument", message, hint='blocked=["name"]'))
    return names


def check_given(plugins: Any) -> tuple[object, ...]:
    """Return the plugins that a caller gives.

    Raises:
        OptionError: they are no list.
    """
    if isinstance(plugins, (list, tuple, set, frozenset)) or hasattr(plugins, "__next__"):
        objects = tuple(plugins)
    else:
        message = f"plugins is {shown(plugins)}, not a list of plugins"
        hint = "plugins=[module]; a file is loaded by load_plugin_file"
        raise OptionError(Diagnostic("invalid-plugins", message, hint=hint))
    for item in objects:
        if item is None or isinstance(item, (str, bytes, int)):
            message = f"{shown(item)} is not a plugin"
            hint = "give the module itself, or any object with hooks; a file is loaded by load_plugin_file"
            raise OptionError(Diagnostic("invalid-plugins", message, hint=hint))
    return objects


def _checked(info: PluginInfo, registry: Registry) -> PluginInfo:
    """Return the state of a plugin, without the passes and priorities that cannot be."""
    if not info.passes and not info.priorities:
        return info
    wrong_passes = {name: problem for name in info.passes for problem in _pass_problems(name, info, registry)}
    wrong_levels = {item: problem for item in info.priorities for problem in _priority_problems(item, info)}
    if not wrong_passes and not wrong_levels:
        return info
    return evolve(
        info,
        passes=tuple(name for name in info.passes if name not in wrong_passes),
        priorities=tuple(item for item in info.priorities if item not in wrong_levels),
        problems=(*info.problems, *wrong_passes.values(), *wrong_levels.values()),
    )


def _pass_problems(name: str, info: PluginInfo, registry: Registry) -> Iterator[Diagnostic]:
    class_: Any = registry.passes.get(name)
    place = location_of(class_) if class_ is not None else ""
    if name in bundled_passes():
        message = f"the pass {name!r} of {info.owner} has the name of a bundled one"
        yield Diagnostic("pass-clash", message, place, hint="give it another name, with a prefix of your own")
    elif name in _RESERVED or name != name.strip() or not name:
        message = f"the pass of {info.owner} cannot be called {name!r}"
        yield Diagnostic("invalid-pass", message, place, hint="give it another name, with a prefix of your own")
    elif class_ is not None:
        yield from _place_problems(name, class_, info, place)


def _place_problems(name: str, class_: Any, info: PluginInfo, place: str) -> Iterator[Diagnostic]:
    neighbours = {item: getattr(class_, item) for item in RUNS_BESIDE if getattr(class_, item, None) is not None}
    if not neighbours:
        names = [item for item in vars(class_) if not item.startswith("_") and item not in RUNS_BESIDE]
        for item in [item for item in names if did_you_mean(item, RUNS_BESIDE)][:1]:
            message = f"the pass {name!r} of {info.owner} has {item}, which means nothing"
            hint = did_you_mean(item, RUNS_BESIDE, likeness=0.85, otherwise=did_you_mean(item, RUNS_BESIDE))
            yield Diagnostic("invalid-pass", message, place, hint=hint)
        return
    if len(neighbours) > 1:
        message = f"the pass {name!r} of {info.owner} has {' and '.join(neighbours)}; it runs in one place"
        yield Diagnostic("invalid-pass", message, place, hint="leave one of them out")
        return
    ((attribute, other),) = neighbours.items()
    if not isinstance(other, str) or other not in bundled_passes():
        where = attribute.removeprefix("runs_")
        message = f"the pass {name!r} of {info.owner} is to run {where} {shown(other)}, which does not exist"
        yield evolve(unknown_name("unknown-pass", message, str(other), bundled_passes()), location=place)
        return
    try:
        Guard(class_, f"the pass {name!r} without options", info.owner, code="invalid-pass").call()
    except ShardyError as error:
        yield evolve(error.diagnostics[0], location=place)


def _priority_problems(priority: OpPriority, info: PluginInfo) -> Iterator[Diagnostic]:
    last = len(DEFAULT.levels) - 1
    if priority.level > last:
        message = f"{info.owner} gives the priority {priority}: there is no level {priority.level}"
        yield Diagnostic(
            "invalid-schedule", message, info.source, hint=f"the levels of the default schedule are 0 to {last}"
        )
