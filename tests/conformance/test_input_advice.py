"""Layouts that are found for a GPT are at least as good in XLA as those that people write by hand."""

from __future__ import annotations

import pytest

pytest.importorskip("jax", reason="the program is JAX's, and XLA compiles it")

from jax.sharding import PartitionSpec as P

from shardy_py.api.options import ProgramInput
from shardy_py.api.program_source import SessionOptions
from shardy_py.cli.session import GivenProgram
from shardy_py.cost.advice.advise_inputs import advise_inputs
from shardy_py.cost.commands.against_xla import xla_figures
from tests.conformance.gpt_program import FSDP, MEGATRON, gpt

pytestmark = pytest.mark.conformance

MESH = {"data": 4, "model": 2}
HAND = {"megatron": (MEGATRON, P("data")), "fsdp": (FSDP, P(("data", "model")))}
ROLES = {"megatron": {"data": "data", "model": "tensor"}, "fsdp": {"data": "fsdp", "model": "fsdp"}}


def _sent(program: ProgramInput) -> float:
    """Return the bytes that a device sends in the program that XLA makes for host devices."""
    return xla_figures(GivenProgram(program, SessionOptions()), None).communication_bytes


@pytest.fixture(scope="module")
def by_hand():
    """The bytes that XLA sends with the shardings that people write."""
    return {name: _sent(ProgramInput(gpt(*specs))) for name, specs in HAND.items()}


@pytest.fixture(scope="module")
def advice():
    """Layouts for few bytes, found without a sharding to start from."""
    return advise_inputs(gpt(), MESH, machine="cpu-8", minimise="bytes", trials=80)


def _layout_sent(layout) -> float:
    in_shardings = {name: sharding for name, sharding in layout.shardings.items() if sharding is not None}
    return _sent(ProgramInput(gpt(), MESH, in_shardings=in_shardings))


@pytest.mark.parametrize("name", list(HAND))
def test_a_layout_of_the_same_kind_sends_no_more_than_that_of_people(name, advice, by_hand):
    """Data and tensor parallelism is compared with Megatron's, full sharding with FSDP's."""
    layout = next(item for item in advice.layouts if item.roles == ROLES[name])
    assert 0 < _layout_sent(layout) <= by_hand[name]


def test_the_fastest_layout_sends_less_than_those_of_people(by_hand):
    """Without a goal the time counts: the program is small, and data parallelism is the best."""
    best = advise_inputs(gpt(), MESH, machine="cpu-8", trials=80).best
    assert best.name == "data parallel over data and model"
    assert 0 < _layout_sent(best) <= min(by_hand.values())
