"""The registry a command line asks for."""

from __future__ import annotations

import warnings
from collections.abc import Iterable

import click

from shardy_py.api.registries import load_registry
from shardy_py.errors import RuleWarning
from shardy_py.plugins import Registry, RuleOptions
from shardy_py.plugins.plugin_files import load_plugin_file


def make_registry(
    *,
    plugins: Iterable[str],
    blocked: Iterable[str],
    strict_plugins: bool,
    conservative: bool,
    extended_rules: bool,
    warn: bool = True,
) -> Registry:
    """Return the registry of the installed plugins and of those in the given files.

    Args:
        plugins: Files and packages with plugins.
        blocked: Names of plugins that are not loaded.
        strict_plugins: Whether problems of installed plugins are errors.
        conservative: Leave out factors that could be sharded unevenly.
        extended_rules: Give rules to ops that the reference leaves without one.
        warn: Whether to say on stderr what is wrong with installed plugins.

    Raises:
        PluginError: the plugin of a file is broken, or with ``strict_plugins`` anything is wrong.
    """
    with warnings.catch_warnings():
        # What Python warns of is among the problems, too.
        warnings.simplefilter("ignore", RuleWarning)
        registry = load_registry(
            plugins=[load_plugin_file(name) for name in plugins],
            blocked=blocked,
            options=RuleOptions(conservative=conservative, extended=extended_rules),
            strict_plugins=strict_plugins,
        )
    for problem in registry.problems if warn else ():
        click.echo(problem.show("warning"), err=True)
    return registry
