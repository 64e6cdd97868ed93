"""Functions of numpy that compute the ops of plugins, from a plugin's dictionary ``FUNCTIONS``."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from shardy_py.errors import Diagnostic, OptionError
from shardy_py.plugins.manager import find_entry_points
from shardy_py.plugins.plugin_files import PluginFile
from shardy_py.plugins.plugin_info import PluginInfo

_FUNCTIONS = "FUNCTIONS"
_BUNDLED = "shardy_dialects."


def functions_of_module(module: object, name: str) -> Mapping[str, Callable[..., Any]]:
    """Return the functions of a plugin.

    Args:
        module: The plugin.
        name: What the user calls it.

    Raises:
        OptionError: it has none.
    """
    functions = getattr(module, _FUNCTIONS, None)
    if functions is None and getattr(module, "__name__", "").startswith(_BUNDLED):
        message = f"the bundled plugin {name!r} has no functions of numpy to check its ops with"
        hint = "check a plugin of your own; 'shardy run FILE --compare' runs a program on devices and on one"
        raise OptionError(Diagnostic("no-functions", message, hint=hint))
    if not isinstance(functions, Mapping) or not all(map(callable, functions.values())):
        message = f"{name} has no dictionary {_FUNCTIONS} of functions"
        hint = "FUNCTIONS = {'toy.matmul': numpy.matmul}: what each op computes on arrays"
        raise OptionError(Diagnostic("no-functions", message, hint=hint))
    return functions


def functions_of(files: Iterable[PluginFile]) -> dict[str, Callable[..., Any]]:
    """Return the functions of all plugins of files that have some.

    Raises:
        OptionError: what a plugin calls so are no functions.
    """
    return _join((file.load(), file.name) for file in files)


def functions_of_installed(plugins: Iterable[PluginInfo], op_names: Collection[str]) -> dict[str, Callable[..., Any]]:
    """Return the functions of those installed plugins that define some ops, and have functions.

    Args:
        plugins: The plugins of a registry.
        op_names: The names of the ops.

    Raises:
        OptionError: what a plugin calls so are no functions.
    """
    needed = {item.name for item in plugins if item.status == "loaded" and not set(item.op_names).isdisjoint(op_names)}
    return _join((point.load(), point.name) for point in find_entry_points() if point.name in needed)


def _join(modules: Iterable[tuple[object, str]]) -> dict[str, Callable[..., Any]]:
    with_functions = [functions_of_module(module, name) for module, name in modules if hasattr(module, _FUNCTIONS)]
    return {name: function for functions in with_functions for name, function in functions.items()}
