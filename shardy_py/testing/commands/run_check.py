"""``shardy check``."""

from __future__ import annotations

import json
import sys

import attrs
import click

from shardy_py.cli.files import echo_report, read_input
from shardy_py.errors import Diagnostic, OptionError, require_library
from shardy_py.plugins import Registry
from shardy_py.plugins.plugin_files import load_plugin_file

_FUNCTIONS = "FUNCTIONS"


def run_check(
    *, plugin: str, programs: tuple[str, ...], untrusted: bool, trials: int, seed: int, as_json: bool
) -> None:
    """Check a plugin, print the report, and exit with 1 where something is wrong.

    Raises:
        OptionError: the plugin has no functions.
    """
    require_library("numpy", purpose="checking a plugin needs", extra="testing")
    module = load_plugin_file(plugin)
    functions = getattr(module, _FUNCTIONS, None)
    if not isinstance(functions, dict) or not all(map(callable, functions.values())):
        message = f"{plugin} has no dictionary {_FUNCTIONS} of functions"
        hint = "FUNCTIONS = {'toy.matmul': numpy.matmul}: what each op computes on arrays"
        raise OptionError(Diagnostic("no-functions", message, hint=hint))
    from shardy_py.testing.plugin_check import check_plugin

    registry = Registry.from_entry_points(plugins=[module])
    sources = {path: read_input(path, untrusted=untrusted, registry=registry) for path in programs}
    report = check_plugin(module, functions, sources, trials=trials, seed=seed, registry=registry)
    if as_json:
        click.echo(json.dumps({"ok": report.ok, **attrs.asdict(report)}, indent=2))
    else:
        echo_report(str(report))
    sys.exit(0 if report.ok else 1)
