"""Refusals behind missing axes."""

from __future__ import annotations

import pytest

pytest.importorskip("jaxlib", reason="the modules are MLIR text")

from shardy_py.sharding.axes import AxisRef
from shardy_py.trace.missing_axes import RefusalSearch, find_missing
from shardy_py.trace.reasons import Reason
from tests.unit.explain.explained import sharded
from tests.unit.explain.programs import product, trace_of


def test_the_tensors_own_refusals_come_first() -> None:
    """The axis is on another dimension already; then the candidate that lost."""
    trace, slot = product(), product().labels.slots["%0"]
    mesh = trace.problem.table.mesh_of(trace.history.last(slot))
    missing = dict(find_missing(trace, slot, 1, mesh))
    assert [one.reason for one in missing[AxisRef("a")]] == [Reason.OVERLAP, Reason.LOST]
    assert set(missing) == {AxisRef("a"), AxisRef("b")}
    assert [one.reason for one in missing[AxisRef("b")]] == [Reason.NOT_OFFERED]


def test_refusals_of_the_axes_of_a_dimension_at_a_step() -> None:
    """The columns of the second operand do not go on to the product."""
    trace, slots = product(), product().labels.slots
    step = trace.labels.maker(slots["%0"])
    found = list(RefusalSearch(trace).refusals_from((slots["%arg1"], 1), step))
    assert [(one.reason, one.slot_dim) for one in found] == [(Reason.LOST, (slots["%0"], 1))]


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
