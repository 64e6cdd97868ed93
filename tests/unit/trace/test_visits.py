"""Visits, explained, and runs that end before everything is settled."""

from __future__ import annotations

import pytest

pytest.importorskip("jaxlib", reason="the modules are MLIR text")


import shardy_py as sdy
from shardy_py.errors import OptionError
from shardy_py.trace.reasons import Reason
from tests.unit.explain.explained import sharded
from tests.unit.explain.programs import product, trace_of


def test_a_visit_is_explained_once_for_equal_inputs() -> None:
    """The same value comes again."""
    trace = product()
    visit = trace.log.visits[-1]
    assert trace.visits.explain(visit) is trace.visits.explain(visit._replace(place=visit.place))
    assert trace.visits.last(visit.step) == [item for item in trace.log.visits if item.step == visit.step][-1]
    assert trace.visits.last(10**6) is None


def test_other_shardings_than_those_seen_are_explained_too() -> None:
    """Without the winner, the axis that lost is accepted."""
    trace = product()
    number = next(item.visit for item in trace.refusals() if item.reason is Reason.LOST)
    visit = trace.log.visits[number]
    values = [trace.problem.table.values[item] for item in visit.seen]
    explanation = trace.visits.explain_with(visit, [None, *values[1:]])
    assert [(item.source, item.target, str(item.axis)) for item in explanation.accepted] == [(1, 2, '"a"')]


def test_a_dimension_of_a_later_priority_is_refused_for_that() -> None:
    """It is closed before, and its axes are kept free; neither is the user's doing."""
    trace = trace_of(
        f"""func.func @main(%arg0: tensor<8x8xf32> {sharded('[{"a"}p1, {?}]')},
                            %arg1: tensor<8x8xf32> {sharded('[{"b"}, {"a"}]')}) -> tensor<8x8xf32> {{
          %0 = stablehlo.add %arg0, %arg1 : tensor<8x8xf32>
          return %0 : tensor<8x8xf32>
        }}"""
    )
    numbers = [
        number for number, item in enumerate(trace.log.visits) if trace.log.places[item.place].user_priority == 0
    ]
    actual = [
        item for number in numbers for item in trace.visits.refusals(trace.log.visits[number]) if item.target == 0
    ]
    details = {item.detail for item in actual if item.reason is Reason.PRIORITY}
    assert details == {"closed until a later user priority", "replicated until a later user priority"}


T = "tensor<8x8xf32>"
CALL = f"""sdy.mesh @mesh = <["a"=2, "b"=2]>
func.func @main(%x: {T}, %v: tensor<8xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{"a"}}]>}}) -> ({T}, {T}) {{
  %0 = stablehlo.negate %x : {T}
  %1 = call @f(%0) : ({T}) -> {T}
  %2 = stablehlo.broadcast_in_dim %v, dims = [0] : (tensor<8xf32>) -> {T}
  %3 = stablehlo.add %0, %2 : {T}
  return %1, %3 : {T}, {T}
}}
func.func private @f(%x: {T}) -> {T} {{
  %0 = stablehlo.tanh %x : {T}
  return %0 : {T}
}}
"""
"""The sum brings the axis back to %0 after the turn of the call at the last level."""

DEAD = f"""sdy.mesh @mesh = <["a"=2]>
func.func @main(%x: {T}, %y: {T} {{sdy.sharding = #sdy.sharding<@mesh, [{{"a"}}, {{}}]>}}) -> {T} {{
  %0 = stablehlo.tanh %x : {T}
  %1 = stablehlo.add %y, %y : {T}
  %2 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : ({T}, {T}) -> {T}
  return %1 : {T}
}}
"""


def codes(result: sdy.Result, value: str, dim: int, axis: str) -> list[str]:
    """Return the codes of the reasons why an axis is not on a dimension."""
    (dimension,) = result.explain(value, dim, names="input").dimensions
    (missing,) = [item for item in dimension.missing if item.axis == axis]
    return [reason.code for reason in missing.reasons]


def test_a_call_that_is_not_looked_at_again() -> None:
    """The reason is that the order ends, not that there are several meshes; the place is on the list."""
    result = sdy.propagate(CALL, trace=True)
    assert codes(result, "@f:%0", 0, '"a"') == ["not-revisited"]
    (place,) = result.not_settled
    assert (place.value, place.dimension, place.axis, place.source) == ("@f:%arg0", 0, '"a"', "%0")
    assert str(place) == '@f:%arg0 dim 0 <- %0 dim 0 "a": through func.call edge @f:%arg0 at -:4:8, factor i'
    refused = result.explain_op("@f:%arg0", names="input").refused
    assert [item.code for item in refused] == ["not-revisited"]


@pytest.mark.parametrize("options", [{"schedule": "settled"}, {"op_priorities": [["*.tanh"]], "schedule": "settled"}])
def test_the_settled_schedule_goes_on(options: dict[str, object]) -> None:
    """Then the function has the axis, and nothing is left to do; orders before it keep that."""
    result = sdy.propagate(CALL, trace=True, **options)
    assert result.not_settled == ()
    assert codes(result, "@f:%0", 0, '"b"') == ["not-offered"]
    assert result.text == sdy.propagate(CALL, **options).text
    argument = result.program.functions["f"].regions[0].block.arguments[0]
    assert str(result.sharding(argument)) == '<@mesh, [{"a"}, {}]>'


def test_without_a_trace_nobody_knows() -> None:
    """The list needs a trace."""
    with pytest.raises(OptionError, match="trace=True"):
        _ = sdy.propagate(CALL).not_settled


def test_what_nobody_uses_is_gone() -> None:
    """An op that is erased keeps nothing back for any other reason, and is on no list."""
    result = sdy.propagate(DEAD, trace=True)
    assert codes(result, "%arg0", 1, '"a"') == ["erased"]
    assert codes(result, "%2", 0, '"a"') == ["not-offered"]
    assert result.not_settled == ()


def test_manual_axes_are_no_matter_inside() -> None:
    """Inside a manual computation its axes are said to be manual."""
    text = f"""sdy.mesh @mesh = <["a"=2, "b"=2]>
func.func @main(%x: {T} {{sdy.sharding = #sdy.sharding<@mesh, [{{"a"}}, {{"b"}}]>}}) -> {T} {{
  %0 = sdy.manual_computation(%x) in_shardings=[<@mesh, [{{"a"}}, {{?}}]>] out_shardings=[<@mesh, [{{"a"}}, {{?}}]>]
      manual_axes={{"a"}} (%y: tensor<4x8xf32>) {{
    %1 = stablehlo.negate %y : tensor<4x8xf32>
    sdy.return %1 : tensor<4x8xf32>
  }} : ({T}) -> {T}
  return %0 : {T}
}}
"""
    assert codes(sdy.propagate(text, trace=True), "%1", 0, '"a"') == ["manual"]


def test_all_rivals_are_named_in_turn() -> None:
    """An axis that three factors want: the one that comes last is told of both that go before it."""
    text = """sdy.mesh @mesh = <["a"=2]>
func.func @main(%x: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>},
    %y: tensor<16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>},
    %z: tensor<32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>}) -> tensor<8x16x32xf32> {
  %0 = stablehlo.custom_call @outer(%x, %y, %z) {sdy.sharding_rule = #sdy.op_sharding_rule<([i], [j], [k])->([i, j, k])
      {i=8, j=16, k=32}, custom>} : (tensor<8xf32>, tensor<16xf32>, tensor<32xf32>) -> tensor<8x16x32xf32>
  return %0 : tensor<8x16x32xf32>
}
"""
    result = sdy.propagate(text, trace=True)
    (dimension,) = result.explain("%0", 0, names="input").dimensions
    (reason,) = [item for item in dimension.missing[0].reasons if item.code == "lost"]
    assert reason.obstacle.dimension == 2
    assert [(item.value, item.dimension) for item in reason.rivals] == [("%arg1", 0)]
    assert "; without that, %arg1 dim 0 would have brought it there" in reason.text
    (dimension,) = result.explain("%0", 1, names="input").dimensions
    (reason,) = [item for item in dimension.missing[0].reasons if item.code == "lost"]
    assert reason.rivals == ()
