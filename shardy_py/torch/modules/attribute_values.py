"""Values of attributes as parts of keys: numbers, texts and the like, also in lists and tuples."""

from __future__ import annotations

import math
import sys
from collections.abc import Hashable
from enum import Enum
from typing import Any

PLAIN = (bool, int, float, str, type(None))
"""The types of values that are parts of keys as they are, but for a nan."""


def is_plain(value: Any) -> bool:
    """Return whether a value is a number, a text, a truth value, None, a member of an enumeration, a dtype or device.

    So are lists and tuples of such.
    """
    import torch

    if isinstance(value, (list, tuple)):
        return all(is_plain(item) for item in value)
    return isinstance(value, (*PLAIN, complex, Enum, torch.dtype, torch.device)) or python_value(value) is not value


def python_value(value: Any) -> Any:
    """Return a value with the numbers of Python that are equal to those of NumPy."""
    if type(value) in PLAIN:
        return value
    if isinstance(value, (list, tuple)):
        items = [python_value(item) for item in value]
        is_same = all(new is old for new, old in zip(items, value, strict=True))
        return value if is_same else items if isinstance(value, list) else tuple(items)
    numpy = sys.modules.get("numpy")
    return value.item() if numpy is not None and isinstance(value, numpy.generic) else value


def key_part(value: Any) -> Hashable:
    """Return a part of a key, which is the value, or a pair of a type and of what is inside."""
    import torch

    if isinstance(value, list):
        return list, tuple([key_part(item) for item in value])
    if isinstance(value, tuple):
        items = tuple([key_part(item) for item in value])
        return value if items == value else items
    if type(value) in (int, float) and torch.compiler.is_compiling():
        from torch.fx.experimental.symbolic_shapes import guard_scalar

        # A compiler that lets numbers vary makes constants of them here.
        value = guard_scalar(value)
    return (float, "nan") if type(value) is float and value != value else value


def restored_value(part: Any) -> Any:
    """Return the value of a part of a key."""
    if not isinstance(part, tuple):
        return part
    if len(part) == 2 and isinstance(part[0], type):
        kind, content = part
        if kind is list:
            return [restored_value(item) for item in content]
        return math.nan if kind is float and content == "nan" else restored_value(content)
    items = tuple([restored_value(item) for item in part])
    return part if items == part else items
