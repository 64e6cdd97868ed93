"""A function of JAX with arguments, and shardings for them over eight devices."""

from __future__ import annotations

import random
from collections.abc import Callable
from math import prod
from typing import Any

import jax
import numpy as np
from attrs import frozen
from jax.sharding import PartitionSpec

AXES = {"data": 4, "model": 2}


@frozen
class JaxFunction:
    """A function to jit and the trees of arrays that it is called with."""

    name: str
    function: Callable[..., Any]
    arguments: tuple[Any, ...]

    def specs(self) -> tuple[Any, ...]:
        """Return a spec for each argument: axes on random dimensions that they divide, the same in each run.

        At least one argument is sharded.
        """
        generator = random.Random(self.name)
        specs: tuple[Any, ...] = ()
        while not any(map(any, jax.tree.leaves(specs, is_leaf=is_spec))):
            specs = jax.tree.map(lambda array: _random_spec(generator, np.shape(array)), self.arguments)
        return specs


def is_spec(item: Any) -> bool:
    """Return whether something is a `PartitionSpec`, which is a leaf of specs."""
    return isinstance(item, PartitionSpec)


def _random_spec(generator: random.Random, shape: tuple[int, ...]) -> PartitionSpec:
    dims: list[tuple[str, ...]] = [() for _ in shape]
    for axis in generator.sample(list(AXES), len(AXES)):
        if not shape or generator.random() > 0.7:
            continue
        dim = generator.randrange(len(shape))
        if shape[dim] % prod(AXES[name] for name in (*dims[dim], axis)) == 0:
            dims[dim] = (*dims[dim], axis)
    return PartitionSpec(*(dim or None for dim in dims))


def normal(*shape: int, seed: int = 0, scale: float = 1.0) -> np.ndarray:
    """Return an array of normal numbers, the same for the same shape and seed."""
    return (np.random.default_rng([seed, *shape]).standard_normal(shape) * scale).astype(np.float32)


def integers(bound: int, *shape: int, seed: int = 0) -> np.ndarray:
    """Return an array of integers below a bound."""
    return np.random.default_rng([seed, bound, *shape]).integers(0, bound, shape).astype(np.int32)
