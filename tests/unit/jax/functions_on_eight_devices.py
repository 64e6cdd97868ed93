"""Functions of JAX by `sdy.jit` and by `jax.jit`; test_eight_devices.py runs a sample in a process of their own."""

from __future__ import annotations

import pytest

from benchmarks.jax_functions import TOLERANCE, PlacedFunction
from benchmarks.programs.jax_functions import JAX_FUNCTIONS
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


@pytest.mark.parametrize("name", NAMES)
def test_a_function_is_right_and_sends_no_more(name: str) -> None:
    """Eight devices compute what one does, with at most the bytes of `jax.jit`."""
    placed = PlacedFunction.of(JAX_FUNCTIONS[name])
    ours, theirs = placed.sent_bytes()
    assert placed.deviation() <= TOLERANCE
    assert ours <= theirs
