"""Chains of moves."""

from __future__ import annotations

import pytest

pytest.importorskip("jaxlib", reason="the modules are MLIR text")

from shardy_py.sharding.axes import AxisRef
from shardy_py.trace.chains import find_chains
from shardy_py.trace.slots import GROUP
from tests.unit.explain.programs import group, priorities, product


def test_a_chain_ends_at_the_annotation() -> None:
    """One move, from the operand that is annotated."""
    trace = product()
    (chain,) = find_chains(trace, trace.labels.slots["%0"], 0, AxisRef("a"))
    assert [(move.slot, move.source, move.direction) for move in chain.moves] == [
        (trace.labels.slots["%0"], trace.labels.slots["%arg0"], "forward")
    ]
    assert (chain.slot, chain.dimension) == (trace.labels.slots["%arg0"], 0)
    assert chain.annotation is trace.annotations[chain.slot]
    assert chain.time == 2 * chain.moves[0].visit + 1


def test_an_annotation_is_a_chain_without_moves() -> None:
    """Its axes are there from the start."""
    trace = product()
    (chain,) = find_chains(trace, trace.labels.slots["%arg0"], 0, AxisRef("a"))
    assert (chain.moves, chain.time, chain.priority) == ((), -1, 0)


def test_a_chain_has_the_priority_of_its_annotation() -> None:
    """An axis with user priority 1 keeps it on its way."""
    trace = priorities()
    (chain,) = find_chains(trace, trace.labels.slots["%0"], 1, AxisRef("b"))
    assert chain.priority == 1


def test_a_sharding_group_is_a_move_between_its_members() -> None:
    """From the member that changed, without a factor."""
    trace = group()
    (chain,) = find_chains(trace, trace.labels.slots["%1"], 0, AxisRef("a"))
    first = chain.moves[0]
    assert (first.direction, first.factor, first.source) == (GROUP, -1, trace.labels.slots["%0"])
    assert first in list(trace.moves())
