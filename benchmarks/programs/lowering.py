"""JAX functions to MLIR text, with shardings on their arguments and nothing computed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import AbstractMesh, NamedSharding
from jax.sharding import PartitionSpec as P

MESH = AbstractMesh((4, 2), ("data", "model"))
"""The mesh of all programs made with JAX."""

Shape = tuple[int, ...]


def transformer_layer(width: int, heads: int, hidden: int) -> dict[str, tuple[Shape, P]]:
    """Return the weights of a layer, split as in Megatron: of a pair, the first by columns, the second by rows."""
    head = width // heads
    return {
        "norm1": ((width,), P()),
        "query": ((width, heads, head), P(None, "model")),
        "key": ((width, heads, head), P(None, "model")),
        "value": ((width, heads, head), P(None, "model")),
        "out": ((heads, head, width), P("model")),
        "norm2": ((width,), P()),
        "up": ((width, hidden), P(None, "model")),
        "down": ((hidden, width), P("model")),
    }


def lower_text(
    function: Callable[..., Any], arguments: tuple[Any, ...], *, integers: tuple[int, ...] = (), mesh: AbstractMesh
) -> str:
    """Return the module of a function, as ``jax.jit`` lowers it for CPUs.

    Args:
        function: The function to lower.
        arguments: Trees of (shape, PartitionSpec), one per argument.
        integers: The numbers of the arguments that are integers; the others are floats, all of 32 bits.
        mesh: The mesh of the shardings.
    """
    shapes = tuple(
        jax.tree.map(
            lambda leaf, dtype=jnp.int32 if number in integers else jnp.float32: jax.ShapeDtypeStruct(leaf[0], dtype),
            tree,
            is_leaf=_is_leaf,
        )
        for number, tree in enumerate(arguments)
    )
    shardings = jax.tree.map(lambda leaf: NamedSharding(mesh, leaf[1]), arguments, is_leaf=_is_leaf)
    traced = jax.jit(function, in_shardings=shardings).trace(*shapes)
    return str(traced.lower(lowering_platforms=("cpu",)).as_text()) + "\n"


def _is_leaf(tree: object) -> bool:
    """Tell a (shape, PartitionSpec) from a tuple of trees."""
    return isinstance(tree, tuple) and len(tree) == 2 and isinstance(tree[1], P)
