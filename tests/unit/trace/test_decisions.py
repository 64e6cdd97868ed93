"""Decisions of a factor propagation as explanations record them, and the reasons of refusals."""

from __future__ import annotations

import pytest

from shardy_py.propagation.step_outcomes import propagate_step
from shardy_py.propagation.steps.factors import Strategy
from shardy_py.sharding.axes import AxisRef
from shardy_py.trace.decisions import Decisions
from shardy_py.trace.reasons import MEANINGS, Reason
from tests.unit.propagation.projected import ADD, MATMUL, context_of, project_texts

A, B, C = AxisRef("a"), AxisRef("b"), AxisRef("c")


def decide(
    rule: str,
    *dims: str | None,
    strategy: Strategy = Strategy.AGGRESSIVE,
    conservative: bool = False,
    is_elementwise: bool = False,
) -> Decisions:
    """Return the decisions of one step."""
    parsed, projection = project_texts(rule, *dims)
    context = context_of(parsed, conservative=conservative, is_elementwise=is_elementwise)
    decisions = Decisions(projection, context)
    propagate_step(projection, context, strategy, decisions)
    return decisions


@pytest.mark.parametrize("strategy", Strategy)
def test_what_fits_has_no_obstacle(strategy: Strategy) -> None:
    """The axes on which the tensors agree are noted by factor; nothing is cut off."""
    decisions = decide(MATMUL, '{"a", ?}, {?}', '{?}, {"b", ?}', "{?}, {?}", strategy=strategy)
    assert decisions.agreed == [(A,), (B,), ()]
    assert decisions.stops == {}


def test_the_loser_of_a_conflict_knows_the_winner() -> None:
    """The factors are ranked, and the one that comes later lost the axis to the other on the result."""
    decisions = decide(MATMUL, '{"a", ?}, {?}', '{?}, {"a", ?}', "{?}, {?}")
    assert {factor: rank.size for factor, rank in decisions.ranks.items()} == {0: 64, 1: 128}
    (stop,) = decisions.stops[2, 0]
    assert (stop.index, stop.obstacle.reason, stop.obstacle.factor, stop.obstacle.by) == (0, Reason.LOST, 1, (A,))


def test_basic_stops_all_tensors_at_the_first_obstacle() -> None:
    """A conflict on one tensor is the obstacle of every tensor of the step."""
    decisions = decide(ADD, '{"a", ?}, {?}', "{}, {?}", "{?}, {?}", strategy=Strategy.BASIC)
    assert sorted(decisions.stops) == [(0, 0), (1, 0), (2, 0)]
    assert {(stop.obstacle.reason, stop.obstacle.tensor) for (stop,) in decisions.stops.values()} == {
        (Reason.CLOSED, 1)
    }
    assert decisions.ranks == {}


def test_conservative_propagation_is_an_obstacle_of_its_own() -> None:
    """Where nothing else keeps a sub-axis away, it is that it is one."""
    rule = "<([i])->([i]) {i=8}>"
    decisions = decide(rule, '{"c":(1)2, ?}', "{?}", conservative=True)
    assert {stop.obstacle.reason for stops in decisions.stops.values() for stop in stops} == {Reason.CONSERVATIVE}
    assert decide(rule, '{"c":(1)2, ?}', "{?}").stops == {}


def test_an_operand_of_an_elementwise_op_is_limited() -> None:
    """The axis that the result may not have does not go sideways, and the limit is the reason."""
    decisions = decide(ADD, '{"a", ?}, {?}', "{?}, {?}", "{}, {?}", is_elementwise=True)
    assert [stop.obstacle.reason for stop in decisions.stops[1, 0]] == [Reason.SIDEWAYS]
    assert [stop.obstacle.reason for stop in decisions.stops[2, 0]] == [Reason.CLOSED]


def test_every_reason_has_a_meaning() -> None:
    """One line each, and no two alike."""
    assert set(MEANINGS) == set(Reason)
    assert len(set(MEANINGS.values())) == len(Reason)
