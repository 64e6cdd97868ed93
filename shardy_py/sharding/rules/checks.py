"""Conditions of the helpers on an op, and the errors for ops that do not meet them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from shardy_py.errors import Diagnostic, RuleError
from shardy_py.sharding.rule_fit import shown_shapes
from shardy_py.sharding.rule_inputs import HasShardableValues, Shape, tensor_shape, values_of
from shardy_py.support.arguments import as_integer, shown


def is_tensor(value: Any) -> bool:
    """Return whether a value has a shape: it is a ranked tensor."""
    return getattr(value.type, "shape", None) is not None


def tensors(op: HasShardableValues) -> list[Any]:
    """Return the operands and results of an op that are ranked tensors."""
    return [value for value in values_of(op) if is_tensor(value)]


def is_static(op: HasShardableValues) -> bool:
    """Return whether all sizes of all tensors are known; an op has no rule otherwise."""
    return not any(None in tensor_shape(value) for value in values_of(op))


def operand_shapes(op: HasShardableValues) -> list[Shape]:
    """Return the sizes of each operand."""
    return [tensor_shape(value) for value in op.operands]


def result_shapes(op: HasShardableValues) -> list[Shape]:
    """Return the sizes of each result."""
    return [tensor_shape(value) for value in op.results]


def first_shapes(op: HasShardableValues, helper: str) -> tuple[Shape, Shape]:
    """Return the sizes of the first operand and of the first result.

    Raises:
        RuleError: the op has no operand or no result.
    """
    if not op.operands or not op.results:
        raise unfit(op, helper, "needs an operand and a result")
    return tensor_shape(op.operands[0]), tensor_shape(op.results[0])


def dims_of(op: HasShardableValues, helper: str, dims: int | Iterable[int], rank: int) -> list[int]:
    """Return dimensions as numbers from 0, sorted; negative ones count from the end, as in numpy.

    Raises:
        RuleError: there is no such dimension, or one is given twice.
    """
    return sorted(order_of(op, helper, dims, rank))


def order_of(op: HasShardableValues, helper: str, order: int | Iterable[int], rank: int) -> list[int]:
    """Return dimensions as numbers from 0, in the order of the argument.

    Raises:
        RuleError: there is no such dimension, or one is given twice.
    """
    numbers = numbers_of(op, helper, order)
    for number in numbers:
        if not -rank <= number < rank:
            raise unfit(op, helper, f"has no dimension {number}: the rank is {rank}")
    permutation = [number % rank for number in numbers]
    if len(set(permutation)) != len(permutation):
        raise unfit(op, helper, f"gets a dimension twice: {', '.join(map(str, numbers))}")
    return permutation


def numbers_of(
    op: HasShardableValues, helper: str, argument: int | Iterable[int], what: str = "dimensions"
) -> list[int]:
    """Return an integer or several as a list of Python integers.

    Raises:
        RuleError: there is something else among them.
    """
    items: list[Any] = (
        list(argument) if isinstance(argument, Iterable) and not isinstance(argument, str) else [argument]
    )
    numbers = [number for number in map(as_integer, items) if number is not None]
    if len(numbers) < len(items):
        hint = f"call it from a function of the op: @dialect.op(...) def ...: return sdy.rules.{helper}(op, ...)"
        raise unfit(op, helper, f"needs {what}, not {shown(argument)}", hint=hint)
    return numbers


def unfit(op: HasShardableValues, helper: str, message: str, *, hint: str = "") -> RuleError:
    """Return the error of a helper that does not fit an op."""
    excerpt = shown_shapes(operand_shapes(op), result_shapes(op))
    return RuleError(Diagnostic("rule-shapes", f"rules.{helper} {message}", hint=hint, excerpt=excerpt))
