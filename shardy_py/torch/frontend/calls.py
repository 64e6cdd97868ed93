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
        return [pair for name, given in self.arguments.items() for pair in _tensors(name, given)]

    def attributes(self) -> dict[str, Attribute]:
        """Return the attributes of the op.

        Raises:
            UnsupportedError: an argument is of a kind that has no form as an attribute.
        """
        found: dict[str, Attribute] = {OPERAND_NAMES: tuple(name for name, _ in self.operands())}
        if self.pointwise:
            found[POINTWISE] = True
        for name, given in self.arguments.items():
            if given is not None and not any(True for _ in _tensors(name, given)):
                found[name] = _attribute(given, self, name)
        return found


def _tensors(name: str, given: Any) -> Iterator[tuple[str, Value]]:
    if isinstance(given, Value):
        yield name, given
    elif isinstance(given, (list, tuple)):
        for number, item in enumerate(given):
            if isinstance(item, Value):
                yield f"{name}[{number}]", item


def _attribute(given: Any, call: Call, name: str) -> Attribute:
    if type(given) in (bool, int, float, str):
        return given
    if isinstance(given, (list, tuple)):
        return tuple(_attribute(item, call, name) for item in given)
    if isinstance(given, complex):
        return {"real": given.real, "imag": given.imag}
    if type(given).__module__ == "torch":
        # A dtype, a layout, a memory format or a device, which PyTorch finds again by its text.
        return str(given)
    message = f"the argument {name} of {call.name} is a {type(given).__name__}"
    hint = "export without dynamic_shapes"
    raise UnsupportedError(Diagnostic("unsupported-argument", message, call.place, call.name, hint))


def schema_arguments(target: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a call by name, with the defaults of the schema."""
    given: dict[str, Any] = {}
    for number, argument in enumerate(target._schema.arguments):
        if argument.name in kwargs:
            given[argument.name] = kwargs[argument.name]
        elif number < len(args) and not argument.kwarg_only:
            given[argument.name] = args[number]
        elif argument.has_default_value():
            given[argument.name] = argument.default_value
    return given
