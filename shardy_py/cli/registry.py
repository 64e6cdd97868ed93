"""The registry and the schedule that a command line asks for."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

from shardy_py.api.program_source import SessionOptions
from shardy_py.cli.files import print_warnings
from shardy_py.errors import RuleWarning
from shardy_py.plugins import Registry
from shardy_py.plugins.plugin_files import plugin_files
from shardy_py.schedule.builtin import NAMED
from shardy_py.schedule.from_options import ScheduleLike
from shardy_py.support.gc_pause import resume_garbage_collection


def make_registry(options: SessionOptions, *, warn: bool = True) -> Registry:
    """Return the registry of the installed plugins and of those in the given files.

    Args:
        options: The options with the plugins, and those that rules depend on.
        warn: Whether problems of installed plugins are printed on stderr.

    Raises:
        PluginError: the plugin of a file is broken, or with ``strict_plugins`` anything is wrong.
    """
    with warnings.catch_warnings():
        # What Python warns of is among the problems, too.
        warnings.simplefilter("ignore", RuleWarning)
        registry = options.load_registry()
    resume_garbage_collection()
    print_warnings(registry.problems if warn else ())
    return registry


def plugin_registry(*, plugins: tuple[str, ...], warn: bool = True, **options: Any) -> Registry:
    """Return the registry of the options that `shardy_py.cli.options.plugin_choice` adds.

    Args:
        plugins: Files and packages with plugins.
        warn: Whether problems of installed plugins are printed on stderr.
        options: More fields of `SessionOptions`.

    Raises:
        PluginError: the plugin of a file is broken, or with ``strict_plugins`` anything is wrong.
    """
    return make_registry(SessionOptions(plugin_files=plugin_files(plugins), **options), warn=warn)


def schedule_argument(text: str) -> ScheduleLike:
    """Return the schedule of a command line: the name of a built-in one, or else a file."""
    return text if text in NAMED else Path(text)
