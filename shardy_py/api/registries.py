"""The registry of a run: installed plugins, and those that are given."""

from __future__ import annotations

from collections.abc import Iterable

from shardy_py.api.check_plugins import check_blocked, check_given, check_names, check_plugins
from shardy_py.plugins import Registry, RuleOptions
from shardy_py.plugins.installed import given_registry, installed_registry


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
    given, not_wanted = check_given(plugins), check_names(blocked)
    if not given and not not_wanted:
        return check_plugins(installed_registry(options=options, skip_broken=not strict_plugins), strict=strict_plugins)
    registry = given_registry(given, blocked=not_wanted, options=options, skip_broken=not strict_plugins)
    check_blocked(registry, not_wanted)
    return check_plugins(registry, strict=strict_plugins)
