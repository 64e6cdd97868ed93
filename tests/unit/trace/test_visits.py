"""Visits, explained."""

from __future__ import annotations

import pytest

pytest.importorskip("jaxlib", reason="the modules are MLIR text")

from shardy_py.trace.reasons import Reason
from tests.unit.explain.explained import sharded
from tests.unit.explain.programs import product, trace_of


def test_a_visit_is_explained_once_for_equal_inputs() -> None:
    """The same value comes again."""
    trace = product()
    visit = trace.log.visits[-1]
    assert trace.visits.explain(visit) is trace.visits.explain(visit._replace(place=visit.place))
    assert trace.visits.last(visit.step) == [one for one in trace.log.visits if one.step == visit.step][-1]
    assert trace.visits.last(10**6) is None


def test_other_shardings_than_those_seen_are_explained_too() -> None:
    """Without the winner, the axis that lost is accepted."""
    trace = product()
    number = next(one.visit for one in trace.refusals() if one.reason is Reason.LOST)
    visit = trace.log.visits[number]
    values = [trace.problem.table.values[one] for one in visit.seen]
    explanation = trace.visits.explain_with(visit, [None, *values[1:]])
    assert [(one.source, one.target, str(one.axis)) for one in explanation.accepted] == [(1, 2, '"a"')]


def test_a_dimension_of_a_later_priority_is_refused_for_that() -> None:
    """It is closed before, and its axes are kept free; neither is the user's doing."""
    trace = trace_of(
        f"""func.func @main(%arg0: tensor<8x8xf32> {sharded('[{"a"}p1, {?}]')},
                            %arg1: tensor<8x8xf32> {sharded('[{"b"}, {"a"}]')}) -> tensor<8x8xf32> {{
          %0 = stablehlo.add %arg0, %arg1 : tensor<8x8xf32>
          return %0 : tensor<8x8xf32>
        }}"""
    )
    numbers = [number for number, one in enumerate(trace.log.visits) if trace.log.places[one.place].user_priority == 0]
    found = [one for number in numbers for one in trace.visits.refusals(trace.log.visits[number]) if one.target == 0]
    details = {one.detail for one in found if one.reason is Reason.PRIORITY}
    assert details == {"closed until a later user priority", "replicated until a later user priority"}
