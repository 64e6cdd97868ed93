"""Functions of JAX by `sdy.jit` and by `jax.jit`; test_eight_devices.py runs a sample in a process of their own."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest
from attrs import evolve

from benchmarks.jax_functions import TOLERANCE, PlacedFunction
from benchmarks.programs.jax_functions import JAX_FUNCTIONS
from benchmarks.programs.jax_functions.case import is_spec
from tests.conformance.sample import IS_WHOLE

SAMPLE = (
    "roll",
    "take_rows",
    "batched_matmul",
    "cumsum",
    "gradient_descent",
    "max_pool_gradient",
    "mlp",
    "train_momentum",
)
NAMES = tuple(JAX_FUNCTIONS) if IS_WHOLE else SAMPLE


def test_there_are_enough() -> None:
    """The benchmark has more than 150 functions."""
    assert len(JAX_FUNCTIONS) > 150


def test_each_has_a_sharded_argument() -> None:
    """Without one, all devices compute the same, and there is nothing to compare."""
    specs = {name: jax.tree.leaves(case.specs(), is_leaf=is_spec) for name, case in JAX_FUNCTIONS.items()}
    assert [name for name, leaves in specs.items() if not any(map(any, leaves))] == []


def test_a_wrong_index_is_no_small_deviation() -> None:
    """An index that is wrong by 1 of 1112 differs by less than rounding errors may."""
    placed = PlacedFunction.of(JAX_FUNCTIONS["argmax_all"])
    assert evolve(placed, ours=lambda x: jnp.argmax(x) + 1).deviation() > TOLERANCE


@pytest.mark.parametrize("name", NAMES)
def test_a_function_is_right_and_sends_no_more(name: str) -> None:
    """Eight devices compute what one does, with at most the bytes of `jax.jit`."""
    placed = PlacedFunction.of(JAX_FUNCTIONS[name])
    ours, theirs = placed.sent_bytes()
    assert placed.deviation() <= TOLERANCE
    assert ours <= theirs
