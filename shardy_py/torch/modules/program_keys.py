"""Keys of the programs of a module: attributes, dtypes, gradients and shapes on which they depend."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import Any

from shardy_py.errors import Diagnostic, OptionError
from shardy_py.support.identity import identity
from shardy_py.torch.modules.attribute_values import PLAIN, is_plain, key_part, python_value, restored_value
from shardy_py.torch.modules.symbolic_trace import Shapes
from shardy_py.values import frozen

Attributes = tuple[Hashable, ...]
"""The values of attributes, of one module after the other."""
Attribute = tuple[str, type, Any]
"""The name of an attribute, the type of its first value, and this value if it has numbers of NumPy, which
`torch.compile` cannot read; otherwise None. A number of NumPy counts as that of Python."""
Key = tuple[Attributes, tuple[Any, ...], tuple[bool, ...], Shapes, Any]
"""Attributes, dtypes of parameters, buffers and inputs, which of these require a gradient, the shapes of the inputs or
none where they are the example's, and the dtype that autocast computes in or None. It is a tuple so that
`torch.compile` can look for a program."""


@frozen(eq=False)
class AttributeNames:
    """The attributes on which a program depends, for each module: numbers, texts, truth values, dtypes and the like.

    Args:
        by_module: The attributes, in the order of ``modules()``.
        modules: The names of the modules, for messages.
    """

    by_module: tuple[tuple[Attribute, ...], ...]
    modules: tuple[str, ...]

    def values_of(self, modules: Sequence[Any]) -> Attributes:
        """Return the values of the attributes of a module.

        Args:
            modules: The ``modules()`` of the module, or of a copy of it.

        Raises:
            OptionError: an attribute has become something else than a number, a text or the like.
        """
        import torch

        is_compiling = torch.compiler.is_compiling()
        values: list[Hashable] = []
        for module, attributes in zip(modules, self.by_module, strict=True):
            variables = vars(module)
            for name, kind, constant in attributes:
                if is_compiling and constant is not None:
                    values.append(constant)
                    continue
                value = variables.get(name)
                is_part = not is_compiling and type(value) is kind and kind in PLAIN and value == value
                values.append(value if is_part else _part_of(module, name, kind, value))
        return tuple(values)

    def apply(self, model: Any, attributes: Attributes) -> None:
        """Give a module the values of attributes."""
        modules = list(model.modules())
        for (module, name), old, new in zip(self._owners(modules), self.values_of(modules), attributes, strict=True):
            if old != new:
                setattr(module, name, restored_value(new))

    def difference(self, before: Attributes, after: Attributes) -> str:
        """Return in words which attribute has another value."""
        for (module, name), old, new in zip(self._owners(self.modules), before, after, strict=True):
            if old != new:
                values = f"{restored_value(new)!r}, and was {restored_value(old)!r} before"
                return f"the attribute {name} of {module or 'the module'} is {values}"
        return ""

    def _owners(self, modules: Sequence[Any]) -> Iterator[tuple[Any, str]]:
        """Return each attribute with its module, or with what stands for it."""
        for module, attributes in zip(modules, self.by_module, strict=True):
            for name, _, _ in attributes:
                yield module, name


def attribute_names(model: Any) -> AttributeNames:
    """Return the attributes of a module that its program depends on."""
    import torch

    internal = set(vars(torch.nn.Module())) - {"training"}
    names = tuple(
        tuple(
            (name, type(python_value(value)), None if python_value(value) is value else key_part(python_value(value)))
            for name, value in vars(module).items()
            if name not in internal and is_plain(value)
        )
        for module in model.modules()
    )
    return AttributeNames(names, tuple(name for name, _ in model.named_modules()))


def _part_of(module: Any, name: str, kind: type, value: Any) -> Hashable:
    """Return the value of an attribute as a part of a key; 1, 1.0 and True give programs of their own.

    Raises:
        OptionError: it is something else than a number, a text or the like.
    """
    if not is_plain(value):
        message = f"the attribute {name} of a {type(module).__name__} is a {type(value).__name__} now"
        hint = "call sdy.parallelize with the module as it is"
        raise OptionError(Diagnostic("module-attribute", message, hint=hint))
    value = python_value(value)
    part = key_part(value)
    return part if type(value) in (kind, list) else (type(value), part)


def state_tensors(modules: Sequence[Any]) -> list[tuple[dict[str, Any], str, Any]]:
    """Return the parameters and buffers of modules with the dictionaries that hold them; tied ones several times."""
    return [
        (tensors, name, tensor)
        for module in modules
        for tensors in (module._parameters, module._buffers)
        for name, tensor in tensors.items()
        if tensor is not None
    ]


def apply_to_tensors(model: Any, mode: Any, dtypes: Sequence[Any], asks: Sequence[bool]) -> None:
    """Give the parameters and buffers of a module dtypes, and let some require a gradient.

    Args:
        model: The module, with tensors without elements.
        mode: The mode of these tensors.
        dtypes: The dtypes, in the order of `state_tensors`; what follows is for inputs.
        asks: Which require a gradient, in this order.
    """
    import torch

    converted: dict[int, Any] = {}
    state = state_tensors(list(model.modules()))
    for (tensors, name, tensor), dtype, asks_gradient in zip(state, dtypes, asks, strict=False):
        if tensor.dtype != dtype:
            with mode:
                new = torch.empty_strided(tensor.shape, tensor.stride(), dtype=dtype, device=tensor.device)
            is_parameter = isinstance(tensor, torch.nn.Parameter)
            new = torch.nn.Parameter(new, requires_grad=False) if is_parameter else new
            # Tied ones stay tied.
            tensors[name] = converted.setdefault(identity(tensor), new)
        tensors[name].requires_grad_(asks_gradient)
