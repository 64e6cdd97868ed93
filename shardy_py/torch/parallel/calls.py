"""Calls of PyTorch's operators from the attributes of ops."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from operator import attrgetter
from typing import Any

from shardy_py.torch.frontend.calls import flat

_ITEM = re.compile(r"(.*)\[(\d+)\]")
VIEWS = frozenset(("aten.view.default", "aten._unsafe_view.default", "aten.view_copy.default"))
"""Operators that are called as reshapes."""
_BY_PLACE = frozenset(("aten.as_strided.default",))
_FOR_GRADIENTS = frozenset(("aten.mkldnn_rnn_layer.default",))
_IN_WORDS = frozenset(("aten._grouped_mm.default",))
BY_ADDRESS: Mapping[str, tuple[str, ...]] = {"aten.native_layer_norm_backward.default": ("mean", "rstd")}
"""Operators to those of their operands that PyTorch reads as if their elements were next to each other in memory.

A part of such a tensor along a dimension that is not the first has other elements in between.
"""
_WORD_BYTES = 16
"""The bytes that the distance between rows has to be a multiple of, for the operators of `_IN_WORDS`."""
UNUSUAL = _BY_PLACE | _FOR_GRADIENTS | _IN_WORDS
"""Operators whose operands or surroundings have to be prepared as the call is made."""


@cache
def operator_of(name: str) -> Any:
    """Return the operator of an op, such as ``torch.ops.aten.linear.default``."""
    import torch

    return attrgetter(name)(torch.ops)


def call(name: str, attributes: Mapping[str, Any], tensors: Sequence[Any], device: Any) -> tuple[Any, ...]:
    """Call an operator and return its tensors.

    Args:
        name: The name of the op.
        attributes: Its attributes, as `shardy_py.torch.frontend` writes them.
        tensors: Its operands.
        device: The device on which tensors are made.
    """
    if name in VIEWS:
        # The strides of a tensor that was gathered or permuted may be others than those of one device.
        return (tensors[0].reshape(list(attributes["size"])),)
    if name in _BY_PLACE:
        # The op looks at places in memory: those of a new tensor.
        tensors = [tensors[0].reshape(-1).clone().view(tensors[0].shape)]
    if name in BY_ADDRESS:
        pairs = zip(tensors, attributes["operand_names"], strict=True)
        tensors = [tensor.contiguous() if operand in BY_ADDRESS[name] else tensor for tensor, operand in pairs]
    if name in _IN_WORDS:
        tensors = [_in_words(tensor) for tensor in tensors]
    import torch

    target = operator_of(name)
    args, kwargs = call_arguments(target, attributes, tensors, device)
    # Some operators leave out what their gradient needs where none is recorded; tensors here never ask for one.
    with torch.set_grad_enabled(name in _FOR_GRADIENTS):
        result = target(*args, **kwargs)
    return tuple(flat(result))


def tensors_of(results: Sequence[Any]) -> tuple[Any, ...]:
    """Return the tensors among the results of an operator: numbers, and what is not computed, are no results of ops."""
    import torch

    return tuple(item for item in flat(results) if isinstance(item, torch.Tensor))


def call_arguments(
    target: Any, attributes: Mapping[str, Any], tensors: Sequence[Any], device: Any
) -> tuple[list[Any], dict[str, Any]]:
    """Return the arguments of a call of an operator, and those that are given by name.

    Args:
        target: The operator.
        attributes: The attributes of its op.
        tensors: The operands, or what stands for them.
        device: The device on which tensors are made.
    """
    values = _arguments(attributes, tensors)
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    for argument in target._schema.arguments:
        value = values.get(argument.name)
        if argument.name not in values and argument.has_default_value():
            value = argument.default_value
        value = device if argument.name == "device" and value is not None else _decode(value, argument)
        if argument.kwarg_only:
            kwargs[argument.name] = value
        else:
            args.append(value)
    return args, kwargs


def _in_words(tensor: Any) -> Any:
    """Return a tensor whose rows begin at whole words: those of a shard may be shorter than those of one device."""
    length = max(_WORD_BYTES // tensor.element_size(), 1)
    if tensor.dim() < 2 or tensor.shape[-1] % length == 0:
        return tensor
    rows = tensor.new_empty((*tensor.shape[:-1], -(-tensor.shape[-1] // length) * length))
    return rows[..., : tensor.shape[-1]].copy_(tensor)


def _arguments(attributes: Mapping[str, Any], tensors: Sequence[Any]) -> dict[str, Any]:
    values: dict[str, Any] = {
        name: value for name, value in attributes.items() if name not in ("operand_names", "pointwise")
    }
    for name, tensor in zip(attributes.get("operand_names", ()), tensors, strict=True):
        item = _ITEM.fullmatch(name)
        if item is None:
            values[name] = tensor
            continue
        items = values.setdefault(item.group(1), [])
        items.extend([None] * (int(item.group(2)) + 1 - len(items)))
        items[int(item.group(2))] = tensor
    return values


def _decode(value: Any, argument: Any) -> Any:
    import torch

    if isinstance(value, str) and value.startswith("torch.") and str(argument.type) != "str":
        return getattr(torch, value.removeprefix("torch."))
    if isinstance(value, str) and argument.name == "device":
        return torch.device(value)
    if isinstance(value, Mapping):
        return complex(value["real"], value["imag"])
    return list(value) if isinstance(value, tuple) else value
