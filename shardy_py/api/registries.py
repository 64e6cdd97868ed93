"""The registry of a run: installed plugins, and those that are given."""

from __future__ import annotations

from collections.abc import Iterable

from shardy_py.errors import PluginError
from shardy_py.plugins import Registry, RuleOptions
from shardy_py.plugins.installed import installed_registry


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
        plugins: More plugins: modules or objects with hook implementations. Whoever gives one means it: it has to work.
        blocked: Names of plugins that are not imported.
        strict_plugins: Whether problems of installed plugins are errors, too; otherwise they are in the registry.

    Raises:
        PluginError: a given plugin is broken, or with ``strict_plugins`` anything is wrong.
    """
    given, not_wanted = tuple(plugins), tuple(blocked)
    if not given and not not_wanted:
        return installed_registry(options=options, skip_broken=not strict_plugins)
    registry = Registry.from_entry_points(
        plugins=given, blocked=not_wanted, options=options, skip_broken=not strict_plugins
    )
    broken = [info for info in registry.plugins if info.status == "broken" and not info.origin]
    if broken:
        raise PluginError(*(problem for info in broken for problem in info.problems))
    return registry
