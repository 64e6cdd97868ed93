"""Functions of JAX by `sdy.jit` and by `jax.jit`; test_eight_devices.py runs a sample in a process of their own."""

from __future__ import annotations

import pytest

from benchmarks.jax_functions import TOLERANCE, PlacedFunction
from benchmarks.programs.jax_functions import JAX_FUNCTIONS
from tests.conformance.sample import sample


def test_there_are_enough() -> None:
    """The benchmark has more than 150 functions."""
    assert len(JAX_FUNCTIONS) > 150


@pytest.mark.parametrize("name", sample(JAX_FUNCTIONS, 32))
def test_a_function_is_right_and_sends_no_more(name: str) -> None:
    """Eight devices compute what one does, with at most the bytes of `jax.jit`."""
    placed = PlacedFunction.of(JAX_FUNCTIONS[name])
    ours, theirs = placed.sent_bytes()
    assert placed.deviation() <= TOLERANCE
    assert ours <= theirs
