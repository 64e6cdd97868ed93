"""Annotations: the shardings that propagation starts with."""

from __future__ import annotations

import pytest

pytest.importorskip("jaxlib", reason="the modules are MLIR text")

from tests.unit.explain.explained import sharded
from tests.unit.explain.programs import trace_of


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
    found = {trace.labels.value(slot): one for slot, one in trace.annotations.items()}
    assert {name: (one.kind, str(one)) for name, one in found.items()} == {
        "x": ("argument", "function argument x"),
        "%0": ("constraint", "sharding constraint %1 of %0"),
        "%1": ("constraint", "sharding constraint %1"),
        "result0": ("result", "function result 0"),
    }
    assert found["%0"].owner == trace.labels.slots["%1"]
    assert found["x"].owner == -1
