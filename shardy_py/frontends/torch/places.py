"""Places of nodes: the line of the source, and the path of the module."""

from __future__ import annotations

import re
from typing import Any

_FRAME = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+)')


def location_of(node: Any) -> str:
    """Return ``file:line`` of the innermost frame of a node, or "" where it has none."""
    frames = _FRAME.findall(node.meta.get("stack_trace") or "")
    return ":".join(frames[-1]) if frames else ""


def module_path_of(node: Any) -> str:
    """Return the path of the innermost module of a node, such as ``layers.0.self_attn``, or ""."""
    stack = node.meta.get("nn_module_stack")
    if not stack:
        return ""
    path: str = list(stack.values())[-1][0]
    return path.removeprefix("L['self']").removeprefix("L__self__").strip(".")
