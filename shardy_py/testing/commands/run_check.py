"""``shardy check``."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import attrs
import click

from shardy_py.cli.files import echo_report, read_input
from shardy_py.errors import Diagnostic, PluginError, did_you_mean, require_library
from shardy_py.plugins import Registry
from shardy_py.plugins.load_errors import Candidate, blame
from shardy_py.plugins.manager import find_entry_points
from shardy_py.plugins.plugin_files import load_plugin_file
from shardy_py.plugins.plugin_functions import functions_of_module


def run_check(
    *, plugin: str, programs: tuple[str, ...], untrusted: bool, trials: int, seed: int, as_json: bool
) -> None:
    """Check a plugin, print the report, and exit with 1 where something is wrong.

    Raises:
        OptionError: the plugin has no functions.
    """
    require_library("numpy", purpose="checking a plugin needs", extra="testing")
    module, is_installed = _load_plugin(plugin)
    functions = functions_of_module(module, plugin)
    from shardy_py.testing.plugin_check import check_plugin

    registry = Registry.from_entry_points(plugins=[] if is_installed else [module])
    sources = {path: read_input(path, untrusted=untrusted, registry=registry) for path in programs}
    report = check_plugin(module, functions, sources, trials=trials, seed=seed, registry=registry)
    if as_json:
        click.echo(json.dumps({"ok": report.ok, **attrs.asdict(report)}, indent=2))
    else:
        echo_report(str(report))
    sys.exit(0 if report.ok else 1)


def _load_plugin(plugin: str) -> tuple[Any, bool]:
    """Return a plugin by its file, or by the name under which it is installed, and whether it is installed.

    Raises:
        PluginError: there is no such plugin, or it fails.
    """
    points = {} if Path(plugin).exists() or "." in plugin else {point.name: point for point in find_entry_points()}
    if plugin not in points:
        if points:
            hint = did_you_mean(
                plugin, points, otherwise="give a Python file; 'shardy plugins' lists the installed ones"
            )
            raise PluginError(Diagnostic("plugin-import", f"there is no file and no plugin {plugin!r}", hint=hint))
        return load_plugin_file(plugin), False
    candidate = Candidate(plugin, "", points[plugin].load)
    with blame(candidate):
        return candidate.load(), True
