"""Dimensions that cannot pass on an axis."""

from __future__ import annotations

import pytest

pytest.importorskip("jaxlib", reason="the modules are MLIR text")

from shardy_py.sharding.axes import AxisRef
from shardy_py.trace.axis_sources import UnreachableSources
from shardy_py.trace.reasons import Reason
from tests.unit.explain.explained import sharded
from tests.unit.explain.programs import trace_of


def test_an_axis_on_the_other_side_of_an_op_without_a_rule() -> None:
    """The op is named in the detail, the tensor as the source."""
    trace = trace_of(
        f"""func.func @main(%arg0: tensor<8xf32> {sharded('[{"a"}]')}) -> tensor<8xf32> {{
          %0 = "toy.mystery"(%arg0) : (tensor<8xf32>) -> tensor<8xf32>
          return %0 : tensor<8xf32>
        }}"""
    )
    slots = trace.labels.slots
    (one,) = UnreachableSources(trace).behind_ops_without_rule((slots["%0"], 0), AxisRef("a"))
    assert (one.reason, one.source, one.detail) == (Reason.NO_RULE, (slots["%arg0"], 0), "toy.mystery %0")


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
    found = list(UnreachableSources(trace).along_other_factors((slots["%0"], 0), AxisRef("a")))
    assert {one.reason for one in found} == {Reason.NO_DIMENSION}
    assert (slots["%arg0"], 1) in {one.source for one in found}
