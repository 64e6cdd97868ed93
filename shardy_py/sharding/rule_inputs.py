"""Checked inputs of rules: ops with values, the shapes of tensors, the dimensions of a factor."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from operator import index as integer
from typing import Any, Protocol

from shardy_py.errors import Diagnostic, RuleError
from shardy_py.support.arguments import as_integer, shown

Shape = tuple[int, ...]
"""The sizes of a tensor; () for a scalar and for anything that is not a tensor."""

Dims = Sequence[int | None] | Mapping[int, int]
"""One dimension per tensor, None where the tensor has no part in the factor; or tensor number to dimension."""


class HasShardableValues(Protocol):
    """An op as far as a rule needs it: values, each with a type that may have a shape."""

    @property
    def operands(self) -> Sequence[Any]:
        """The operand values."""
        ...

    @property
    def results(self) -> Sequence[Any]:
        """The result values."""
        ...


def tensor_shape(value: Any) -> Shape:
    """Return the sizes of a value's type, () where it has none (tokens, tuples)."""
    shape: Shape = getattr(value.type, "shape", ())
    return shape if type(shape) is tuple else tuple(shape)


def values_of(op: HasShardableValues) -> list[Any]:
    """Return the operands and the results of an op.

    Raises:
        RuleError: it is not an op.
    """
    try:
        return [*op.operands, *op.results]
    except AttributeError:
        hint = "give the argument of a rule function, an op"
        raise RuleError(Diagnostic("no-op", f"{shown(op)} has no operands and results", hint=hint)) from None


def as_shapes(tensor_shapes: Iterable[Shape], side: str) -> tuple[Shape, ...]:
    """Return the shapes of the operands or the results of an op as tuples.

    Args:
        tensor_shapes: A sequence of sizes per tensor.
        side: What messages call a tensor: ``operand`` or ``result``.

    Raises:
        RuleError: one is not a sequence of sizes.
    """
    try:
        shapes = tuple([shape if type(shape) is tuple else tuple(shape) for shape in tensor_shapes])
    except TypeError:
        shapes = None
    if shapes is not None and all(map(_is_size, chain.from_iterable(shapes))):
        return shapes
    message = f"the shapes of {side}s are {shown(tensor_shapes)}, not one tuple of sizes per {side}"
    raise RuleError(Diagnostic("rule-rank", message, hint=f"for example [(8, 4)] for one {side}"))


def _is_size(size: object) -> bool:
    """Return whether a value is the size of a dimension, or None for an unknown size."""
    return type(size) is int or size is None or as_integer(size) is not None


def as_number(value: Any) -> int:
    """Return the number of a dimension or operand; -1, which none has, for anything but an integer."""
    number = value if type(value) is int else as_integer(value)
    return -1 if number is None else number


def checked_size(size: Any) -> int:
    """Return the size of a factor as an int.

    Raises:
        RuleError: it is not an integer.
    """
    try:
        return integer(size)
    except TypeError:
        message = f"the size of a factor is {size!r}, not an integer"
        raise RuleError(Diagnostic("factor-size", message, hint="give a size of a dimension")) from None


def numbered_dims(dims: Dims, side: str, count: int) -> Iterable[tuple[int, int | None]]:
    """Return the number of each tensor that a factor is about, with its dimension.

    Raises:
        RuleError: there are not as many dimensions as tensors, or no tensor of such a number.
    """
    if isinstance(dims, Mapping):
        unknown = [number for number in dims if not 0 <= as_number(number) < count]
        if unknown:
            message = f"there is no {side} {shown(unknown[0])} for the factor: the op has {count}"
            raise RuleError(Diagnostic("no-dimension", message, hint=f"{side}s are numbered from 0"))
        return dims.items()
    if not isinstance(dims, Sequence):
        raise _no_sequence(dims, side)
    if len(dims) != count:
        message = f"a factor needs one dimension or None per tensor: {count}, not {len(dims)}"
        raise RuleError(Diagnostic("no-dimension", message, hint="None is for a tensor without the factor"))
    return enumerate(dims)


def _no_sequence(value: object, side: str) -> RuleError:
    message = f"{side}_dims is {value!r}, not one dimension per {side}"
    return RuleError(Diagnostic("no-dimension", message, hint=f"[{value!r}] for one {side}; None stands for none"))


def no_dimension(dim: object, what: str, number: int, mapping: Sequence[object]) -> RuleError:
    """Return the error of a tensor without a dimension of such a number."""
    message = f"{what} {number} has no dimension {shown(dim)}, its rank is {len(mapping)}"
    return RuleError(Diagnostic("no-dimension", message, hint="dimensions are numbered from 0; None stands for none"))
