"""Names of the inputs of a module: those of the parameters of its ``forward``."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

_OTHER = re.compile(r"\W+")


def input_names(
    model: Any, loss: Callable[..., Any] | None, args: Sequence[Any], kwargs: Mapping[str, Any], count: int
) -> list[str]:
    """Return a name for each leaf of the inputs, such as ``x``, or ``batch_0`` for the first in a list.

    Args:
        model: The module.
        loss: The function of its outputs and of the inputs that it does not take.
        args: The positional inputs.
        kwargs: The inputs that are given by name.
        count: How many of the positional inputs the module takes.
    """
    from torch.utils import _pytree as pytree

    positional = _positional(model.forward, count, skipped=0)
    if loss is not None:
        positional += _positional(getattr(loss, "forward", loss), len(args) - count, skipped=1)
    names = []
    for path, _ in pytree.tree_flatten_with_path((tuple(args), dict(kwargs)))[0]:
        first = positional[path[1].idx] if path[0].idx == 0 else str(path[1].key)
        rest = _OTHER.sub("_", "".join(map(str, path[2:]))).strip("_")
        names.append(f"{first}_{rest}" if rest else first)
    return _distinct(names)


def _positional(function: Any, count: int, *, skipped: int) -> list[str]:
    """Return the names of positional parameters of a function; numbered ones where it takes any number."""
    try:
        parameters = list(inspect.signature(function).parameters.values())[skipped:]
    except (TypeError, ValueError):
        parameters = []
    plain = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    names = [item.name for item in parameters if item.kind in plain][:count]
    return names + [f"input{number}" for number in range(len(names), count)]


def _distinct(names: Sequence[str]) -> list[str]:
    """Return the names with a number appended to each that occurs again: `["x", "x"]` becomes `["x", "x_2"]`."""
    known: set[str] = set()
    distinct = []
    for name in names:
        new, number = name, 1
        while new in known:
            number += 1
            new = f"{name}_{number}"
        known.add(new)
        distinct.append(new)
    return distinct
