"""Inputs of a call, by position or by name as those of the example are."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

from shardy_py.errors import Diagnostic, OptionError
from shardy_py.values import frozen

_PLAIN = (bool, int, float, str, type(None))


@frozen(eq=False)
class InputForm:
    """Form of the inputs of the example: which are given by position, and which by name.

    Args:
        parameters: The names of the parameters of ``forward`` that may be given by position.
        defaults: The defaults of parameters of ``forward`` that are no tensors.
        args: The positional inputs of the example that ``forward`` takes.
        kwargs: Those that are given by name.
        extra: How many inputs of the loss come behind the positional ones.
    """

    parameters: tuple[str, ...]
    defaults: Mapping[str, Any]
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    extra: int

    def arranged(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the inputs of a call by position and by name as in the example.

        One that is given as its default may be left out, and the other way round.

        Args:
            args: The positional inputs.
            kwargs: Those that are given by name.

        Raises:
            OptionError: there is one that the example does not have, or one of these is missing.
        """
        if len(args) == len(self.args) + self.extra and list(kwargs) == list(self.kwargs):
            return args, dict(kwargs)
        count = len(args) - self.extra
        if not 0 <= count <= len(self.parameters) or len(self.args) > len(self.parameters):
            # A ``forward`` of any number of inputs, or inputs of the loss that are missing.
            return args, dict(kwargs)
        given = {**dict(zip(self.parameters, args[:count], strict=False)), **kwargs}
        example = {**dict(zip(self.parameters, self.args, strict=False)), **self.kwargs}
        for name, value in given.items():
            if name not in example and not self._is_default(name, value):
                message = f"the input {name} is given, and the example has none"
                raise OptionError(
                    Diagnostic("input-structure", message, hint="call sdy.parallelize with an example of it")
                )
        for name, value in example.items():
            if name not in given and not self._is_default(name, value):
                message = f"the input {name} is missing"
                raise OptionError(Diagnostic("input-structure", message, hint=f"the inputs are {', '.join(example)}"))
        positional = tuple(given.get(name, example[name]) for name in self.parameters[: len(self.args)])
        return (*positional, *args[count:]), {name: given.get(name, example[name]) for name in self.kwargs}

    def _is_default(self, name: str, value: Any) -> bool:
        """Return whether a value, which is no tensor, is the default of a parameter."""
        return type(value) in _PLAIN and name in self.defaults and value == self.defaults[name]


def input_form(model: Any, args: Sequence[Any], kwargs: Mapping[str, Any], count: int) -> InputForm:
    """Return the form of the inputs of an example.

    Args:
        model: The module.
        args: The positional inputs; the last ones are those of the loss.
        kwargs: Those that are given by name.
        count: How many of the positional inputs the module takes.
    """
    try:
        parameters = list(inspect.signature(model.forward).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    by_position = tuple(item.name for item in parameters if item.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD)
    if any(item.kind in (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.VAR_POSITIONAL) for item in parameters):
        by_position = ()
    defaults = {item.name: item.default for item in parameters if type(item.default) in _PLAIN}
    return InputForm(by_position, defaults, tuple(args[:count]), dict(kwargs), len(args) - count)
