"""Calls of operators: arguments by the names of their schema, and their form as attributes of an op.

Tensors become operands, everything else an attribute of its own name. The attribute ``operand_names`` says which
argument each operand is: ``weight``, or ``tensors[1]`` in a list. An argument that is None has no attribute.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from shardy_py.errors import Diagnostic, UnsupportedError
from shardy_py.ir.graph.attributes import Attribute
from shardy_py.ir.graph.program import Value
from shardy_py.ir.graph.types import TensorType
from shardy_py.values import frozen

OPERAND_NAMES = "operand_names"
"""The attribute with the name of the argument of each operand."""
POINTWISE = "pointwise"
"""The attribute of ops that PyTorch tags as pointwise."""


@frozen
class Call:
    """One call of an operator.

    Args:
        name: The name of the overload, such as ``aten.linear.default``.
        arguments: Argument name to what is given, by the schema, defaults included; tensors are values.
        types: The types of the results; None for those that are not computed.
        pointwise: Whether PyTorch tags the operator as pointwise.
        place: The place in the source, for errors.
    """

    name: str
    arguments: Mapping[str, Any]
    types: tuple[TensorType | None, ...]
    pointwise: bool = False
    place: str = ""

    def operands(self) -> list[tuple[str, Value]]:
        """Return the tensors among the arguments with their names, in the order of the schema."""
        return [pair for name, argument in self.arguments.items() for pair in _tensors(name, argument)]

    def attributes(self) -> dict[str, Attribute]:
        """Return the attributes of the op.

        Raises:
            UnsupportedError: an argument is of a kind that has no form as an attribute.
        """
        attributes: dict[str, Attribute] = {OPERAND_NAMES: tuple(name for name, _ in self.operands())}
        if self.pointwise:
            attributes[POINTWISE] = True
        for name, argument in self.arguments.items():
            if argument is not None and not any(True for _ in _tensors(name, argument)):
                attributes[name] = _attribute(argument, self, name)
        return attributes


def _tensors(name: str, argument: Any) -> Iterator[tuple[str, Value]]:
    if isinstance(argument, Value):
        yield name, argument
    elif isinstance(argument, (list, tuple)):
        for number, item in enumerate(argument):
            if isinstance(item, Value):
                yield f"{name}[{number}]", item


def _attribute(argument: Any, call: Call, name: str) -> Attribute:
    if type(argument) in (bool, int, float, str):
        return argument
    if isinstance(argument, (list, tuple)):
        return tuple(_attribute(item, call, name) for item in argument)
    if isinstance(argument, complex):
        return {"real": argument.real, "imag": argument.imag}
    if type(argument).__module__ == "torch":
        # A dtype, a layout, a memory format or a device, which PyTorch finds again by its text.
        return str(argument)
    message = f"the argument {name} of {call.name} is a {type(argument).__name__}"
    hint = "export without dynamic_shapes"
    raise UnsupportedError(Diagnostic("unsupported-argument", message, call.place, call.name, hint))


def schema_arguments(target: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a call by name, with the defaults of the schema."""
    arguments: dict[str, Any] = {}
    for number, argument in enumerate(target._schema.arguments):
        if argument.name in kwargs:
            arguments[argument.name] = kwargs[argument.name]
        elif number < len(args) and not argument.kwarg_only:
            arguments[argument.name] = args[number]
        elif argument.has_default_value():
            arguments[argument.name] = argument.default_value
    return arguments


def flat(nested: Any) -> list[Any]:
    """Return what nested lists and mappings hold, in order: the results of an operator, or the output of a graph."""
    if isinstance(nested, Mapping):
        return flat(list(nested.values()))
    return [leaf for item in nested for leaf in flat(item)] if isinstance(nested, (list, tuple)) else [nested]
