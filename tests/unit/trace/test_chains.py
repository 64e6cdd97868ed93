"""Chains of moves, and the annotations that they begin at."""

from __future__ import annotations

import pytest

pytest.importorskip("jaxlib", reason="the modules are MLIR text")


from shardy_py.sharding.axes import AxisRef
from shardy_py.trace.chains import find_chains
from shardy_py.trace.slot_moves import GROUP
from tests.unit.explain.explained import sharded
from tests.unit.explain.programs import group, priorities, product, trace_of


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


def test_each_kind_of_annotation_says_what_it_is_on() -> None:
    """Arguments, results and constraints; a constraint belongs to its operand, too, with itself as owner."""
    trace = trace_of(
        f"""func.func @main(%arg0: tensor<8xf32> {sharded('[{"a"}]')} loc("x"))
            -> (tensor<8xf32> {sharded('[{"b"}]')}) {{
          %0 = stablehlo.negate %arg0 : tensor<8xf32>
          %1 = sdy.sharding_constraint %0 <@mesh, [{{"b"}}]> : tensor<8xf32>
          return %1 : tensor<8xf32>
        }}"""
    )
    actual = {trace.labels.value(slot): item for slot, item in trace.annotations.items()}
    assert {name: (item.kind, str(item)) for name, item in actual.items()} == {
        "x": ("argument", "function argument x"),
        "%0": ("constraint", "sharding constraint %1 of %0"),
        "%1": ("constraint", "sharding constraint %1"),
        "result0": ("result", "function result 0"),
    }
    assert actual["%0"].owner == trace.labels.slots["%1"]
    assert actual["x"].owner == -1
