"""Sizes of results that do not follow from a sharding rule, for programs whose dynamic dimensions get numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from shardy_py.ir.graph.attributes import DenseElements
from shardy_py.ir.graph.program import Op, Value
from shardy_py.ir.graph.types import TensorType, static_shape
from shardy_py.support.element_types import mlir_element_bits
from shardy_py.values import frozen

Numbers = tuple[int | None, ...]
"""The elements of a small tensor of integers, None for those that are not known."""


@frozen
class ResultSizes:
    """Sizes, and elements, of the results of an op, as far as they follow from those of its operands.

    Args:
        shape: The sizes of every result; None where they follow from the rule, or are not known yet.
        numbers: The elements of the first result, row-major, where it is a small tensor of integers.
        static: Builds what stands in the place of the result once all sizes are known, before the op.
        equal: Dimensions of operands, or of other values, that are one size: values, each with the number of one.
        is_met: Whether the op is an assertion about sizes that holds, so that it can be left out.
    """

    shape: Sequence[int | None] | None = None
    numbers: Numbers | None = None
    static: Callable[[Op], Value] | None = None
    equal: Sequence[tuple[Value, int]] = ()
    is_met: bool = False


NumbersOf = Callable[[Value], Numbers | None]
"""Returns the elements of a small tensor of integers, None where they are not known."""
SizesOf = Callable[[Op, NumbersOf], ResultSizes | None]
"""Returns what is known of the results of an op whose operands have the sizes that are known so far."""
_MOST_NUMBERS = 64
_INTEGERS = ("i1", "i8", "i16", "i32", "i64", "index")


def has_few_integers(op: Op) -> bool:
    """Return whether the first result of an op is a small tensor of integers, such as a shape."""
    type_ = op.results[0].type
    shape = static_shape(type_)
    is_integer = isinstance(type_, TensorType) and type_.element_type in _INTEGERS
    return is_integer and shape is not None and prod(shape) <= _MOST_NUMBERS


def constant_sizes(op: Op, numbers_of: NumbersOf) -> ResultSizes | None:
    """Return the elements of a constant of few integers."""
    elements = op.attributes.get("value") if has_few_integers(op) else None
    if not isinstance(elements, DenseElements):
        return None
    numbers: Numbers = tuple(map(int, elements.values))
    count = prod(static_shape(op.results[0].type) or ())
    return ResultSizes(numbers=numbers * count if len(numbers) == 1 else numbers)


def truncated_quotient(first: int, second: int) -> int:
    """Return a quotient rounded towards zero, as ops divide integers.

    >>> truncated_quotient(-7, 2)
    -3
    """
    quotient = abs(first) // abs(second)
    return quotient if (first < 0) == (second < 0) else -quotient


def wrapped_integer(number: int, element_type: str) -> int:
    """Return what an integer type holds of a number; ``i1`` holds whether it is not zero.

    >>> wrapped_integer(130, "i8"), wrapped_integer(4, "i1"), wrapped_integer(1 << 40, "index")
    (-126, 1, 1099511627776)
    """
    if element_type == "i1":
        return int(number != 0)
    half = 1 << ((mlir_element_bits(element_type) or 64) - 1)
    return (number + half) % (2 * half) - half
