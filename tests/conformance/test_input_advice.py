"""The layout that is planned for a GPT is at least as good in XLA as those that people write by hand."""

from __future__ import annotations

import pytest

pytest.importorskip("jax", reason="the program is JAX's, and XLA compiles it")

from jax.sharding import PartitionSpec as P

from shardy_py.api.options import ProgramInput
from shardy_py.api.program_source import SessionOptions
from shardy_py.cli.session import GivenProgram
from shardy_py.cost.commands.against_xla import xla_figures
from shardy_py.plans.advise_inputs import advise_inputs
from tests.conformance.gpt_program import FSDP, MEGATRON, gpt

pytestmark = pytest.mark.conformance

MESH = {"data": 4, "model": 2}
HAND = {"megatron": (MEGATRON, P("data")), "fsdp": (FSDP, P(("data", "model")))}


def _sent(program: ProgramInput) -> float:
    """Return the bytes that a device sends in the program that XLA makes for host devices."""
    return xla_figures(GivenProgram(program, SessionOptions()), None).communication_bytes


@pytest.fixture(scope="module")
def by_hand():
    """The bytes that XLA sends with the shardings that people write."""
    return {name: _sent(ProgramInput(gpt(*specs))) for name, specs in HAND.items()}


def test_the_fastest_layout_sends_no_more_than_those_of_people(by_hand):
    """As it is written, with its constraints inside, it sends in XLA what the advice says."""
    pytest.importorskip("highspy")
    advice = advise_inputs(gpt(), MESH, machine="cpu-8")
    sent = _sent(ProgramInput(advice.text))
    assert sent == pytest.approx(advice.best.figures.bytes, rel=1e-3)
    assert 0 < sent <= min(by_hand.values())
