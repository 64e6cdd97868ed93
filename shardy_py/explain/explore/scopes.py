"""Name stacks of JAX, taken apart: the part of a training step that an op belongs to, and its layers."""

from __future__ import annotations

import re
from functools import cache

from shardy_py.values import frozen

FORWARD = "forward"
BACKWARD = "backward"
_JITTED = ("jit(", "pjit(")
_WRAPPED = re.compile(r"(?P<transform>\w+)\((?P<inside>.*)\)", re.DOTALL)


@frozen
class NameStack:
    """One name stack.

    Args:
        phase: ``forward`` where the op is differentiated, ``backward`` where it computes gradients, else "".
        layers: The names of scopes and functions around the op, the outermost first, without transformations and
            without the function that was jitted.
        primitive: The name of the primitive, or "".
        equation: The equation of the einsum that the op is a part of, such as ``nd,df->nf``, or "".
    """

    phase: str
    layers: tuple[str, ...]
    primitive: str
    equation: str = ""

    @property
    def path(self) -> tuple[str, ...]:
        """The names by which an op is folded, the outermost first."""
        return (self.phase, *self.layers) if self.phase else self.layers


@cache
def parse_scope(text: str) -> NameStack:
    """Return the parts of a name stack, as `Op.scope` has it.

    >>> parse_scope("jit(step)/transpose(jvp(layer_3))/mlp/mul")
    NameStack(phase='backward', layers=('layer_3', 'mlp'), primitive='mul', equation='')
    """
    *around, primitive = _split(text)
    if around and around[0].startswith(_JITTED):
        del around[0]
    layers, transforms, equation = [], set[str](), ""
    for part in around:
        name = part
        while match := _WRAPPED.fullmatch(name):
            transforms.add(match["transform"])
            name = match["inside"]
        if "->" in name:
            equation = name
        elif name:
            layers.append(name)
    phase = BACKWARD if "transpose" in transforms else FORWARD if "jvp" in transforms else ""
    return NameStack(phase, tuple(layers), "" if _WRAPPED.fullmatch(primitive) else primitive, equation)


def _split(text: str) -> list[str]:
    """Return the parts of a name stack, split at slashes outside of brackets."""
    parts, depth = [""], 0
    for char in text:
        depth += (char in "([{") - (char in ")]}")
        if char == "/" and depth <= 0:
            parts.append("")
        else:
            parts[-1] += char
    return parts
