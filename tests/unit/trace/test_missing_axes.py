"""Refusals behind missing axes, rivals of a lost axis, and dimensions that cannot pass on an axis."""

from __future__ import annotations

import pytest

pytest.importorskip("jaxlib", reason="the modules are MLIR text")


from shardy_py.sharding.axes import AxisRef
from shardy_py.trace.axis_sources import UnreachableSources, find_rivals
from shardy_py.trace.missing_axes import RefusalSearch, find_missing
from shardy_py.trace.reasons import Reason
from tests.unit.explain.explained import sharded
from tests.unit.explain.programs import product, trace_of


def test_the_tensors_own_refusals_come_first() -> None:
    """The axis is on another dimension already; then the candidate that lost."""
    trace, slot = product(), product().labels.slots["%0"]
    mesh = trace.problem.table.mesh_of(trace.history.last(slot))
    missing = dict(find_missing(trace, slot, 1, mesh))
    assert [item.reason for item in missing[AxisRef("a")]] == [Reason.OVERLAP, Reason.LOST]
    assert set(missing) == {AxisRef("a"), AxisRef("b")}
    assert [item.reason for item in missing[AxisRef("b")]] == [Reason.NOT_OFFERED]


def test_refusals_of_the_axes_of_a_dimension_at_a_step() -> None:
    """The columns of the second operand do not go on to the product."""
    trace, slots = product(), product().labels.slots
    step = trace.labels.maker(slots["%0"])
    actual = list(RefusalSearch(trace).refusals_from((slots["%arg1"], 1), step))
    assert [(item.reason, item.slot_dim) for item in actual] == [(Reason.LOST, (slots["%0"], 1))]


def test_an_axis_stops_at_the_nearest_tensor() -> None:
    """The distance counts the ops between."""
    trace = trace_of(
        f"""func.func @main(%arg0: tensor<8xf32> {sharded('[{"a"}]')}) -> tensor<8xf32> {{
          %0 = sdy.sharding_constraint %arg0 <@mesh, [{{}}]> : tensor<8xf32>
          %1 = stablehlo.negate %0 : tensor<8xf32>
          %2 = stablehlo.tanh %1 : tensor<8xf32>
          return %2 : tensor<8xf32>
        }}"""
    )
    near, far = [
        next(RefusalSearch(trace).refusals((trace.labels.slots[name], 0), AxisRef("a"))) for name in ("%1", "%2")
    ]
    assert far.distance == near.distance + 1
    assert far.slot_dim == near.slot_dim


def test_of_two_candidates_the_loser_has_no_rival_but_the_winner() -> None:
    """Had the winner not wanted the axis, the loser would have got it."""
    trace = product()
    (lost,) = [item for item in trace.refusals() if item.reason is Reason.LOST]
    visit = trace.deciding_visit(lost)
    (refusal,) = [item for item in trace.visits.refusals(visit) if item.reason is Reason.LOST]
    assert list(find_rivals(trace, visit, refusal)) == []


def test_an_axis_on_the_other_side_of_an_op_without_a_rule() -> None:
    """The op is named in the detail, the tensor as the source."""
    trace = trace_of(
        f"""func.func @main(%arg0: tensor<8xf32> {sharded('[{"a"}]')}) -> tensor<8xf32> {{
          %0 = "toy.mystery"(%arg0) : (tensor<8xf32>) -> tensor<8xf32>
          return %0 : tensor<8xf32>
        }}"""
    )
    slots = trace.labels.slots
    (single,) = UnreachableSources(trace).behind_ops_without_rule((slots["%0"], 0), AxisRef("a"))
    assert (single.reason, single.source, single.detail) == (Reason.NO_RULE, (slots["%arg0"], 0), "toy.mystery %0")


def test_an_axis_along_a_factor_that_the_tensor_has_not() -> None:
    """The contracting dimension of a product is none of its result."""
    trace = trace_of(
        f"""func.func @main(%arg0: tensor<8x16xf32> {sharded('[{?}, {"a"}]')}, %arg1: tensor<16x4xf32>)
            -> tensor<8x4xf32> {{
          %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0]
              : (tensor<8x16xf32>, tensor<16x4xf32>) -> tensor<8x4xf32>
          return %0 : tensor<8x4xf32>
        }}"""
    )
    slots = trace.labels.slots
    actual = list(UnreachableSources(trace).along_other_factors((slots["%0"], 0), AxisRef("a")))
    assert {item.reason for item in actual} == {Reason.NO_DIMENSION}
    assert (slots["%arg0"], 1) in {item.source for item in actual}
