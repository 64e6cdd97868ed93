"""Ops of two modules of one program, with their shardings, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import Any

from shardy_py.api.summary import RESHARDS, sharding_of
from shardy_py.ir.graph.op_names import CONSTRAINT, FUNCTION, MESH
from shardy_py.ir.graph.program import Op, Program
from shardy_py.ir.interfaces.ops import ConstantLike, IsTerminator, OpSemantics
from shardy_py.sharding.tensor import TensorSharding
from shardy_py.values import frozen

Axes = tuple[tuple[str, ...], ...]
"""The axes of each dimension of a tensor, and behind them those along which it is unreduced."""

_LEFT_OUT = RESHARDS | {CONSTRAINT, FUNCTION, MESH}
_SAME_NAMES = {"stablehlo.dot_general": "stablehlo.dot"}
"""The name that HLO's import gives to an op in its plainest form."""


@frozen
class OpDecision:
    """An op with the shardings of its results.

    Args:
        name: Its name, with the names of the ops around it.
        types: The types of its results.
        axes: Its `Axes`, one per result.
        location: Its place in the source, or "".
        scope: Its name stack, or "".
    """

    name: str
    types: tuple[str, ...]
    axes: tuple[Axes, ...]
    location: str = ""
    scope: str = ""

    def __str__(self) -> str:
        return f"{self.name} : {', '.join(self.types)}"

    @property
    def text(self) -> str:
        """The shardings, in Shardy's notation without the mesh."""
        return ", ".join(_text(axes) for axes in self.axes) or "no results"


def decisions_of(program: Program, semantics: OpSemantics) -> list[OpDecision]:
    """Return the ops of a propagated program with their shardings; constants, reshards and constraints are left out."""
    return [
        OpDecision(
            _path(op),
            tuple(str(value.type) for value in op.results),
            tuple(axes_of(sharding_of(program, value, semantics)) for value in op.results),
            op.location,
            op.scope,
        )
        for op in program.walk()
        if op.name not in _LEFT_OUT
        and not semantics.has_trait(op, IsTerminator)
        and not semantics.has_trait(op, ConstantLike)
    ]


def axes_of(sharding: TensorSharding | None) -> Axes:
    """Return the axes of a sharding; nothing for a replicated value, whether it says so or not."""
    if sharding is None:
        return ()
    dims = [tuple(map(str, dim.axes)) for dim in sharding.dim_shardings]
    while dims and not dims[-1]:
        dims.pop()
    unreduced = tuple(map(str, sharding.unreduced_axes))
    return (*dims, ("unreduced", *unreduced)) if unreduced else tuple(dims)


def align(here: Sequence[OpDecision], jit: Sequence[OpDecision]) -> list[tuple[OpDecision | None, OpDecision | None]]:
    """Return the ops of two modules in pairs, by name, types and order; None for an op without a counterpart."""
    keys = [[(op.name, op.types) for op in side] for side in (here, jit)]
    if keys[0] == keys[1]:
        return list(zip(here, jit, strict=True))
    pairs: list[tuple[OpDecision | None, OpDecision | None]] = []
    matcher = SequenceMatcher(None, keys[0], keys[1], autojunk=False)
    for tag, begin, end, other_begin, other_end in matcher.get_opcodes():
        if tag == "equal":
            pairs += zip(here[begin:end], jit[other_begin:other_end], strict=True)
        else:
            pairs += [(op, None) for op in here[begin:end]]
            pairs += [(None, op) for op in jit[other_begin:other_end]]
    return pairs


def _path(op: Op) -> str:
    names = [_SAME_NAMES.get(op.name, op.name)]
    parent: Any = op.parent_op
    while parent is not None and parent.name != FUNCTION:
        names.append(parent.name)
        parent = parent.parent_op
    return " in ".join(names)


def _text(axes: Axes) -> str:
    if not axes:
        return "replicated"
    return "[" + ", ".join("{" + ", ".join(dim) + "}" for dim in axes) + "]"
