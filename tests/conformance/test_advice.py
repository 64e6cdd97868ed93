"""Advice helps in XLA, too."""

from __future__ import annotations

import pytest

pytest.importorskip("jax", reason="the programs are JAX's, and XLA compiles them")

from jax.sharding import PartitionSpec as P

from shardy_py.api.options import ProgramInput
from shardy_py.api.program_source import SessionOptions
from shardy_py.cli.session import GivenProgram
from shardy_py.cost.advice.advise import advise, write_advised
from shardy_py.cost.commands.against_xla import xla_figures
from shardy_py.cost.session import Session
from tests.conformance.advice_programs import llama, mixture

pytestmark = pytest.mark.conformance


def _sent(text: str) -> float:
    """Return the bytes that a device sends in the program that XLA makes for host devices."""
    return xla_figures(GivenProgram(ProgramInput(text), SessionOptions()), None).communication_bytes


def _estimated(text: str) -> float | None:
    return Session.open(text).evaluate(machine="cpu-8", partitioner="xla").cost.communication_bytes.value


@pytest.mark.parametrize(
    ("program", "rank", "op"), [(llama, 3, "gather"), (mixture, 3, "multiply")], ids=["llama", "moe"]
)
def test_one_constraint_halves_the_bytes_that_xla_sends(program, rank, op):
    """The first constraint is at the known place; XLA sends half as much, and JAX's line costs the same."""
    text = program()
    found = advise(text, machine="cpu-8", minimise="bytes", limit=1, trials=40)
    first = found.constraints[0].constraint
    assert (first.place.op, first.place.type.rank) == (f"stablehlo.{op}", rank)
    assert first.jax.endswith('P("data", None, None))')
    written = write_advised(ProgramInput(text), found.shardings)
    assert _sent(written) <= 0.5 * _sent(text)
    assert _estimated(program(P("data", None, None))) == _estimated(written)
