"""Signatures for the API reference of functions whose keywords are the fields of a value.

The API reference is made from sources, where such a function has the value as its one parameter.
"""

from __future__ import annotations

import inspect
from importlib import import_module
from typing import Any

import griffe

DECORATORS = ("takes(", "method_takes(")
KINDS = {
    inspect.Parameter.POSITIONAL_ONLY: griffe.ParameterKind.positional_only,
    inspect.Parameter.POSITIONAL_OR_KEYWORD: griffe.ParameterKind.positional_or_keyword,
    inspect.Parameter.KEYWORD_ONLY: griffe.ParameterKind.keyword_only,
}


class Keywords(griffe.Extension):
    """Give functions with the decorators of `shardy_py.api.keywords` the signature and the help that they have."""

    def on_function(self, *, func: griffe.Function, **arguments: Any) -> None:
        """Replace the parameters and the docstring of such a function by those of the imported one."""
        if not any(str(item.value).startswith(DECORATORS) for item in func.decorators):
            return
        real: Any = import_module(func.module.path)
        for name in func.path.removeprefix(f"{func.module.path}.").split("."):
            real = getattr(real, name)
        parameters = inspect.signature(real).parameters.values()
        func.parameters = griffe.Parameters(*map(_parameter, parameters))
        func.docstring = griffe.Docstring(inspect.getdoc(real) or "", parent=func, parser="google")


def _parameter(item: inspect.Parameter) -> griffe.Parameter:
    default = None if item.default is item.empty else getattr(item.default, "__name__", repr(item.default))
    return griffe.Parameter(item.name, annotation=str(item.annotation), kind=KINDS[item.kind], default=default)
