"""Keys of the programs of a module: attributes, dtypes, gradients and shapes on which they depend."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from shardy_py.errors import Diagnostic, OptionError
from shardy_py.support.identity import identity
from shardy_py.torch.modules.symbolic_trace import Shapes
from shardy_py.values import frozen

Attributes = tuple[tuple[Hashable, ...], ...]
"""The values of attributes of each module, in the order of ``modules()``."""
Key = tuple[Attributes, tuple[Any, ...], tuple[bool, ...], Shapes, Any]
"""Attributes, dtypes of parameters and buffers, which of these and of the inputs require a gradient, the shapes of the
inputs or none where they are the example's, and the dtype that autocast computes in or None. It is a tuple so that
`torch.compile` can look for a program."""

_PLAIN = (bool, int, float, str, type(None))


@frozen(eq=False)
class AttributeNames:
    """The names of the attributes on which a program depends, for each module: numbers, texts and truth values.

    Args:
        by_module: The names, in the order of ``modules()``.
        modules: The names of the modules, for messages.
    """

    by_module: tuple[tuple[str, ...], ...]
    modules: tuple[str, ...]

    def values_of(self, model: Any) -> Attributes:
        """Return the values of the attributes of a module.

        Args:
            model: The module, or a copy of it.

        Raises:
            OptionError: an attribute has become something else than a number, a text or a truth value.
        """
        return tuple(
            tuple(self._value(module, name) for name in names)
            for module, names in zip(model.modules(), self.by_module, strict=True)
        )

    def _value(self, module: Any, name: str) -> Hashable:
        value = vars(module).get(name)
        if type(value) in _PLAIN:
            return value
        if isinstance(value, list):
            value = tuple(value)
        if not _is_plain(value):
            message = f"the attribute {name} of a {type(module).__name__} is a {type(value).__name__} now"
            hint = "call sdy.parallelize with the module as it is"
            raise OptionError(Diagnostic("module-attribute", message, hint=hint))
        return value

    def apply(self, model: Any, attributes: Attributes) -> None:
        """Give a module the values of attributes."""
        for module, names, values in zip(model.modules(), self.by_module, attributes, strict=True):
            for name, value in zip(names, values, strict=True):
                if self._value(module, name) != value:
                    setattr(module, name, value)

    def difference(self, before: Attributes, after: Attributes) -> str:
        """Return in words which attribute has another value."""
        for module, names, old, new in zip(self.modules, self.by_module, before, after, strict=True):
            for name, first, second in zip(names, old, new, strict=True):
                if first != second:
                    owner = module or "the module"
                    return f"the attribute {name} of {owner} is {second!r}, and was {first!r} before"
        return ""


def attribute_names(model: Any) -> AttributeNames:
    """Return the names of the attributes of a module that its program depends on."""
    import torch

    internal = set(vars(torch.nn.Module())) - {"training"}
    names = tuple(
        tuple(
            name
            for name, value in vars(module).items()
            if name not in internal and _is_plain(tuple(value) if isinstance(value, list) else value)
        )
        for module in model.modules()
    )
    return AttributeNames(names, tuple(name for name, _ in model.named_modules()))


def _is_plain(value: Any) -> bool:
    """Return whether a value is a number, a text, a truth value, None, or a tuple of such."""
    if isinstance(value, tuple):
        return all(type(item) in _PLAIN for item in value)
    return type(value) in _PLAIN


def state_tensors(model: Any) -> list[tuple[dict[str, Any], str, Any]]:
    """Return the parameters and buffers of a module with the dictionaries that hold them; tied ones several times."""
    return [
        (tensors, name, tensor)
        for module in model.modules()
        for tensors in (module._parameters, module._buffers)
        for name, tensor in tensors.items()
        if tensor is not None
    ]


def apply_to_tensors(model: Any, mode: Any, dtypes: Sequence[Any], asks: Sequence[bool]) -> None:
    """Give the parameters and buffers of a module dtypes, and let some require a gradient.

    Args:
        model: The module, with tensors without elements.
        mode: The mode of these tensors.
        dtypes: The dtypes, in the order of `state_tensors`.
        asks: Which require a gradient, in this order; what follows is for inputs.
    """
    import torch

    converted: dict[int, Any] = {}
    for (tensors, name, tensor), dtype, asks_gradient in zip(state_tensors(model), dtypes, asks, strict=False):
        if tensor.dtype != dtype:
            with mode:
                new = torch.empty_strided(tensor.shape, tensor.stride(), dtype=dtype, device=tensor.device)
            is_parameter = isinstance(tensor, torch.nn.Parameter)
            new = torch.nn.Parameter(new, requires_grad=False) if is_parameter else new
            # Tied ones stay tied.
            tensors[name] = converted.setdefault(identity(tensor), new)
        tensors[name].requires_grad_(asks_gradient)
