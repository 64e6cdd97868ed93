"""Paths of tensors: names of arguments as steps through a tree, and the argument that a tensor stems from."""

from __future__ import annotations

import re

from shardy_py.api.summary import RESHARDS
from shardy_py.ir.graph.program import Value

Path = tuple[str, ...]
"""The steps to a leaf of a tree of arguments: ``p['layers'][3]['up']`` is ``("p", "layers", "3", "up")``."""

_STEP = re.compile(r"[^\[\]'\".]+")
_VAGUE = frozenset({"weight", "bias", "kernel", "scale", "w", "b"})
"""Last steps that say too little without the step before them."""
_LAYOUT_OPS = frozenset(
    {
        *("transpose", "reshape", "convert", "broadcast_in_dim", "dynamic_slice", "slice", "optimization_barrier"),
        *("copy", "t", "permute", "view", "expand", "unsqueeze", "squeeze", "_to_copy", "detach", "alias", "clone"),
        *("sharding_constraint", "propagation_barrier", "Transpose", "Reshape", "Cast", "Identity"),
    }
)
"""Ops, by the name behind that of the dialect, whose result holds elements of their first operand and nothing else."""


def parse_path(name: str) -> Path:
    """Return the steps of a name; none for a name of the text, such as ``%arg0``.

    >>> parse_path("p['layers'][3]['up']")
    ('p', 'layers', '3', 'up')
    """
    return () if name.startswith(("%", "@")) else tuple(_STEP.findall(name))


def join_numbers(path: Path) -> Path:
    """Return a path whose numbers are part of the step before them.

    >>> join_numbers(("layers", "3", "up"))
    ('layers_3', 'up')
    """
    steps: list[str] = []
    for step in path:
        if step.isdigit() and steps:
            steps[-1] += f"_{step}"
        else:
            steps.append(step)
    return tuple(steps)


def short_name(name: str, *, in_layer: bool) -> str:
    """Return the name of an argument for a row.

    Args:
        name: The user's name, or that in the text.
        in_layer: Whether the row says which layer it belongs to, so that the last step is enough.
    """
    path = join_numbers(parse_path(name))
    if len(path) < 2:
        return name
    if not in_layer:
        return "/".join(path[1:])
    return "/".join(path[-2:] if path[-1] in _VAGUE and len(path) > 2 else path[-1:])


def is_layout_op(name: str) -> bool:
    """Return whether an op only moves or converts the elements of its first operand."""
    return name in RESHARDS or name.rpartition(".")[2] in _LAYOUT_OPS


def before_reshards(value: Value) -> Value:
    """Return the value that a value is, before all communication."""
    while (op := value.defining_op) is not None and op.name in RESHARDS and op.operands:
        value = op.operands[0]
    return value


def source_of(value: Value) -> Value:
    """Return the value whose elements a value holds, before all ops that only move or convert them.

    An argument of the body of a loop stems from the operand that the loop starts with.
    """
    while True:
        op = value.owning_op if value.is_block_argument else value.defining_op
        if op is None or not op.operands:
            return value
        if value.is_block_argument:
            around = value.owner.arguments  # type: ignore[union-attr]
            if len(around) != len(op.operands) or op.operands[value.index].type != value.type:
                return value
            value = op.operands[value.index]
        elif is_layout_op(op.name):
            value = op.operands[value.index if len(op.results) > 1 else 0]
        else:
            return value
