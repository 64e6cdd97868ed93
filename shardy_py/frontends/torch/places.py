"""Places of nodes: the line of the source, and the path of the module."""

from __future__ import annotations

import re
from typing import Any

_FRAME = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+)')
_OF_TORCH = re.compile(r"[/\\]site-packages[/\\]torch[/\\]")


def location_of(node: Any) -> str:
    """Return ``file:line`` of the innermost frame of a node outside of PyTorch, or "" where it has none."""
    frames = _FRAME.findall(node.meta.get("stack_trace") or "")
    own = [frame for frame in frames if not _OF_TORCH.search(frame[0])]
    return ":".join((own or frames)[-1]) if frames else ""


def module_path_of(node: Any) -> str:
    """Return the path of the innermost module of a node, such as ``layers.0.self_attn``, or ""."""
    stack = node.meta.get("nn_module_stack")
    if not stack:
        return ""
    path: str = list(stack.values())[-1][0]
    return path.removeprefix("L['self']").removeprefix("L__self__").strip(".")
