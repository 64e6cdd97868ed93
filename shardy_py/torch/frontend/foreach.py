"""Operators on lists of tensors, as optimizers call them: one op for each tensor of the list."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from attrs import evolve

from shardy_py.ir.graph.program import Value
from shardy_py.torch.frontend.calls import Call

PREFIX = "aten._foreach_"
FUSED = "aten._fused_"
_OPTIMIZERS = ("adam", "adamw", "adagrad", "sgd")
_NAMES = {"norm": ("linalg_vector_norm",), "zero": ("zeros_like",)}
_BOUNDS = {"maximum": "clamp_min", "minimum": "clamp_max"}
"""Operators that compare with tensors only, to those that compare with a number."""


def rewrite_of(name: str) -> Callable[..., Any] | None:
    """Return what takes an operator on lists apart, None for other operators."""
    if name.startswith(PREFIX):
        return apart
    is_fused = name.startswith(FUSED) and name.removeprefix(FUSED).partition(".")[0] in _OPTIMIZERS
    return fused_apart if is_fused else None


def fused_apart(emit: Callable[[Call], list[Value | None]], call: Call) -> list[Value | None]:
    """Add the step of an optimizer for each parameter by itself, and return the results: first those of the first list.

    Args:
        emit: Adds an op.
        call: The step for a list of parameters.
    """
    count = len(call.arguments["self"])
    steps: list[list[Value | None]] = []
    for number in range(count):
        lists = {name: value for name, value in call.arguments.items() if isinstance(value, (list, tuple)) and value}
        single = {name: [value[number]] for name, value in lists.items() if len(value) == count}
        steps.append(emit(evolve(call, arguments={**call.arguments, **single}, types=call.types[number::count])))
    return [step[number] for number in range(len(steps[0]) if steps else 0) for step in steps]


def apart(emit: Callable[[Call], list[Value | None]], call: Call) -> list[Value | None] | None:
    """Add an op for each tensor of a list, and return their results; None where no operator takes single tensors.

    Args:
        emit: Adds an op.
        call: A call of an operator on lists.
    """
    base = call.name.removeprefix(PREFIX).partition(".")[0]
    names = _NAMES.get(base, (base, *filter(None, (_BOUNDS.get(base),))))
    calls: list[Call] = []
    for number, type_ in enumerate(call.types):
        arguments_of_item = {name: _item(value, number, len(call.types)) for name, value in call.arguments.items()}
        single = next((fit for name in names if (fit := _fitting(name, arguments_of_item)) is not None), None)
        if single is None or type_ is None:
            return None
        target, arguments = single
        is_pointwise = any(tag.name == "pointwise" for tag in target.tags)
        calls.append(evolve(call, name=str(target), arguments=arguments, types=(type_,), pointwise=is_pointwise))
    return [emit(single_call)[0] for single_call in calls]


def _item(value: Any, number: int, count: int) -> Any:
    return value[number] if isinstance(value, (list, tuple)) and len(value) == count else value


def _fitting(name: str, named_values: Mapping[str, Any]) -> tuple[Any, dict[str, Any]] | None:
    """Return the overload of an operator that takes some arguments, and these by the names in its schema."""
    import torch

    packet = getattr(torch.ops.aten, name, None)
    for overload in () if packet is None else packet.overloads():
        target = getattr(packet, overload)
        arguments = None if target._schema.is_mutable else _named(target, named_values)
        if arguments is not None:
            return target, arguments
    return None


def _named(target: Any, named_values: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return arguments by the names of an overload: those of the same name, then the others in order; None if unfit."""
    schema = target._schema.arguments
    free = [item.name for item in schema if item.name not in named_values]
    names = {item.name for item in schema}
    arguments: dict[str, Any] = {}
    for name, value in named_values.items():
        if name not in names and not free:
            return None
        arguments[name if name in names else free.pop(0)] = value
    for item in schema:
        if item.name not in arguments and not item.has_default_value():
            return None
        value = arguments.setdefault(item.name, item.default_value if item.has_default_value() else None)
        if value is not None and (str(item.type) in ("Tensor", "Optional[Tensor]")) != isinstance(value, Value):
            return None
    return {item.name: arguments[item.name] for item in schema}
