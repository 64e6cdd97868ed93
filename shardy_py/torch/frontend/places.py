"""Places of nodes: the line of the source, and the path and class of the module."""

from __future__ import annotations

import re
from typing import Any

_FRAME = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+)')
_HIGHER_ORDER = re.compile(r"wrap\w*|tag_activation_checkpoint|invoke_subgraph")
_OF_TORCH = re.compile(r"[/\\]site-packages[/\\]torch[/\\]")


def location_of(node: Any) -> str:
    """Return ``file:line`` of the innermost frame of a node outside of PyTorch, or "" where it has none."""
    frames = _FRAME.findall(node.meta.get("stack_trace") or "")
    user_frames = [frame for frame in frames if not _OF_TORCH.search(frame[0])]
    return ":".join((user_frames or frames)[-1]) if frames else ""


def module_of(node: Any) -> tuple[str, str] | None:
    """Return the path of the innermost module of a node, such as ``layers.0.self_attn``, and the name of its class.

    The root has the path "". A graph that was traced inside of another one, as that of autocast is, says nothing of its
    modules; then it is None.
    """
    stack = node.meta.get("nn_module_stack")
    if not stack or is_inlined(node):
        return None
    path, kind = list(stack.values())[-1]
    name = kind if isinstance(kind, str) else f"{kind.__module__}.{kind.__qualname__}"
    return path.removeprefix("L['self']").removeprefix("L__self__").strip("."), name


def is_inlined(node: Any) -> bool:
    """Return whether a node comes from the graph of a higher-order op that the export has inlined."""
    return bool(_HIGHER_ORDER.fullmatch(original_target(node)))


def original_target(node: Any) -> str:
    """Return the name of the operator that a node was before decompositions, or ""."""
    sources = node.meta.get("from_node") or ()
    return str(getattr(sources[0], "target", "")) if sources else ""
