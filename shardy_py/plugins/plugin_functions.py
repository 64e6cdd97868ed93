"""Functions of numpy that compute the ops of plugins, from a plugin's dictionary ``FUNCTIONS``."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from shardy_py.errors import Diagnostic, OptionError
from shardy_py.plugins.plugin_files import PluginFile

_FUNCTIONS = "FUNCTIONS"


def functions_of_module(module: object, name: str) -> dict[str, Callable[..., Any]]:
    """Return the functions of a plugin.

    Args:
        module: The plugin.
        name: What the user calls it.

    Raises:
        OptionError: it has none.
    """
    functions = getattr(module, _FUNCTIONS, None)
    if not isinstance(functions, dict) or not all(map(callable, functions.values())):
        message = f"{name} has no dictionary {_FUNCTIONS} of functions"
        hint = "FUNCTIONS = {'toy.matmul': numpy.matmul}: what each op computes on arrays"
        raise OptionError(Diagnostic("no-functions", message, hint=hint))
    return functions


def functions_of(files: Iterable[PluginFile]) -> dict[str, Callable[..., Any]]:
    """Return the functions of all plugins of files that have some.

    Raises:
        OptionError: what a plugin calls so are no functions.
    """
    modules = [(file.load(), file.name) for file in files]
    with_functions = [functions_of_module(module, name) for module, name in modules if hasattr(module, _FUNCTIONS)]
    return {name: function for functions in with_functions for name, function in functions.items()}
