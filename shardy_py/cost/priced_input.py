"""The program that is priced: a text that JAX wrote as `jax.jit` propagates it, where XLA's partitioner is priced."""

from __future__ import annotations

from typing import TypeVar

from attrs import evolve

from shardy_py.api.options import ProgramInput
from shardy_py.cost.machines.profile import Profile, choose_profile
from shardy_py.cost.machines.toml import MachineLike, get_machine
from shardy_py.extensions import function

Input = TypeVar("Input", bound=ProgramInput)

PRICED_LIKE_JIT = (
    "JAX wrote the module, so it is priced as jax.jit propagates it, after XLA's conversion to HLO: give like='passes'"
    " to price the module as it is"
)
"""The note of a cost of such a program."""


def is_priced_like_jit(
    program: ProgramInput, machine: MachineLike | None, profile: str | Profile | None = None
) -> bool:
    """Return whether a module is priced in another form than it is propagated in by default.

    A profile of XLA says what XLA's partitioner sends, and XLA never partitions the module as JAX writes it. MLIR text
    is propagated as Shardy's passes do it, so that it equals the reference.

    Args:
        program: The program.
        machine: The machine that prices it.
        profile: The profile; None for that of the machine.
    """
    return is_converted_by_xla(program, choose_profile(profile, None if machine is None else get_machine(machine)))


def is_converted_by_xla(program: ProgramInput, profile: Profile) -> bool:
    """Return whether XLA converts a module before it partitions it as a profile says, and `like` leaves that open."""
    return profile.follows_results and program.like is None and bool(function("is_written_by_jax")(program.module))


def priced_input(program: Input, machine: MachineLike | None, profile: str | Profile | None = None) -> Input:
    """Return a program in the form in which it is priced."""
    return evolve(program, like="jit") if is_priced_like_jit(program, machine, profile) else program
