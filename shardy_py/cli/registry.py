"""The registry a command line asks for."""

from __future__ import annotations

import importlib.util
import sys
import warnings
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType

import click

from shardy_py.api.registries import load_registry
from shardy_py.errors import Diagnostic, PluginError, RuleWarning, ShardyError
from shardy_py.plugins import Registry, RuleOptions


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
        plugins: Files with plugins.
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


def load_plugin_file(name: str) -> ModuleType:
    """Run a Python file as a plugin module, named after the file.

    Raises:
        PluginError: the file cannot be read or fails.
    """
    path = Path(name)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise PluginError(
            Diagnostic("plugin-import", f"{name} is not a Python file", hint="give a file that ends in .py")
        )
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except ShardyError:
        raise
    except Exception as error:
        line = _line_in(path, error)
        raise PluginError(
            Diagnostic("plugin-import", f"the plugin failed with {type(error).__name__}: {error}", location=line)
        ) from error
    return module


def _line_in(path: Path, error: Exception) -> str:
    """Return the last line of a file that an error passed through."""
    if isinstance(error, SyntaxError) and error.lineno:
        return f"{path}:{error.lineno}"
    place = str(path)
    trace = error.__traceback__ or sys.exc_info()[2]
    while trace is not None:
        if Path(trace.tb_frame.f_code.co_filename) == path.absolute() or trace.tb_frame.f_code.co_filename == str(path):
            place = f"{path}:{trace.tb_lineno}"
        trace = trace.tb_next
    return place
