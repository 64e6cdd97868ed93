"""Ops without a rule."""

from __future__ import annotations

import pytest

pytest.importorskip("jaxlib", reason="the modules are MLIR text")

from tests.unit.explain.explained import sharded
from tests.unit.explain.programs import trace_of


def test_an_op_without_a_rule_is_known_at_each_of_its_tensors() -> None:
    """Ops with a rule, returns and data flow are not among them."""
    trace = trace_of(
        f"""func.func @main(%arg0: tensor<8xf32> {sharded('[{"a"}]')}) -> tensor<8xf32> {{
          %0 = "toy.mystery"(%arg0) : (tensor<8xf32>) -> tensor<8xf32>
          %1 = stablehlo.optimization_barrier %0 : tensor<8xf32>
          %2 = stablehlo.negate %1 : tensor<8xf32>
          return %2 : tensor<8xf32>
        }}"""
    )
    slots = trace.labels.slots
    found = {name: [str(op) for op, _ in trace.ops_without_rule.get(slots[name], ())] for name in ("%arg0", "%0", "%2")}
    assert found == {"%arg0": ["toy.mystery %0"], "%0": ["toy.mystery %0"], "%2": []}
