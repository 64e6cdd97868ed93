"""Random numbers in the order of memory: that is how they are drawn for a tensor whose dimensions are permuted.

Devices make tensors of their own, whose elements are in order. So a call for a permuted tensor draws for one in the
order of memory, and its results are permuted; one for normal numbers says the order as ``memory_order``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from attrs import evolve

from shardy_py.ir.graph.program import Value
from shardy_py.ir.graph.types import TensorType
from shardy_py.torch.frontend.calls import Call

_LIKE_OPERAND = frozenset(
    f"aten.{name}"
    for name in (
        *("dropout.default", "native_dropout.default", "rand_like.default"),
        *("randint_like.default", "randint_like.low_dtype", "uniform.default", "exponential.default"),
        *("cauchy.default", "geometric.default", "log_normal.default"),
        *("random.default", "random.from", "random.to"),
    )
)
"""Operators whose results have the elements in memory where their operand has them."""
_NORMAL = frozenset(("aten.randn_like.default", "aten.normal_functional.default"))
"""Those of them that draw other numbers for a permuted tensor than for one in the order of memory."""
_PRESERVED = ("None", "torch.preserve_format")


def drawn_in_order(
    emit: Callable[[Call], list[Value | None]], call: Call, fake: Any, *, is_written: bool
) -> list[Value | None] | None:
    """Add a call that draws numbers for a permuted tensor, and return its results; None where it is as it is.

    Args:
        emit: Adds the op of a call.
        call: The call.
        fake: The fake tensor of its first argument.
        is_written: Whether the numbers are written to that tensor.
    """
    arguments = call.arguments
    operands = call.operands()
    if not (is_written or call.name in _LIKE_OPERAND | _NORMAL) or len(operands) != 1 or not hasattr(fake, "stride"):
        return None
    if (
        arguments.get("train") is False
        or arguments.get("p") == 0
        or str(arguments.get("memory_format")) not in _PRESERVED
    ):
        return None
    order = _memory_order(tuple(fake.shape), tuple(fake.stride()))
    if order is None:
        return None
    if call.name in _NORMAL:
        return emit(evolve(call, arguments={**arguments, "memory_order": order}))
    ((name, value),) = operands
    laid = _copied(emit, call, _permuted(emit, call, value, order))
    types = tuple(None if type_ is None else _permuted_type(type_, order) for type_ in call.types)
    results = emit(evolve(call, arguments={**arguments, name: laid}, types=types))
    back = [order.index(dim) for dim in range(len(order))]
    return [None if item is None else _permuted(emit, call, item, back) for item in results]


def _memory_order(shape: tuple[int, ...], strides: tuple[int, ...]) -> list[int] | None:
    """Return the dimensions from the one whose elements are furthest apart; None where that is their order.

    Elements of expanded tensors are in one place; for these there is no such order.
    """
    long = [dim for dim, size in enumerate(shape) if size > 1]
    ordered = sorted(long, key=lambda dim: -strides[dim])
    if ordered == long or any(strides[dim] == 0 for dim in long) or 0 in shape:
        return None
    return [*(dim for dim, size in enumerate(shape) if size == 1), *ordered]


def _permuted(emit: Callable[[Call], list[Value | None]], call: Call, value: Value, order: Sequence[int]) -> Value:
    assert isinstance(value.type, TensorType), "operands of operators are tensors"
    arguments = {"self": value, "dims": list(order)}
    type_ = _permuted_type(value.type, order)
    (result,) = emit(evolve(call, name="aten.permute.default", arguments=arguments, types=(type_,), pointwise=False))
    assert result is not None, "the only result is computed"
    return result


def _copied(emit: Callable[[Call], list[Value | None]], call: Call, value: Value) -> Value:
    assert isinstance(value.type, TensorType), "operands of operators are tensors"
    arguments = {"self": value, "memory_format": "torch.contiguous_format"}
    (result,) = emit(evolve(call, name="aten.clone.default", arguments=arguments, types=(value.type,), pointwise=False))
    assert result is not None, "the only result is computed"
    return result


def _permuted_type(type_: TensorType, order: Sequence[int]) -> TensorType:
    return TensorType(tuple(type_.shape[dim] for dim in order), type_.element_type)
