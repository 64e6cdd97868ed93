"""Traces of small programs that several tests of the record read."""

from __future__ import annotations

from functools import cache

from shardy_py.trace.trace import Trace
from tests.unit.explain.explained import sharded, traced


def trace_of(body: str, **options: object) -> Trace:
    """Return the trace of a module."""
    trace = traced(body, **options).trace
    assert trace is not None
    return trace


@cache
def product() -> Trace:
    """Return the trace of a product whose operands both want "a", of 16x8 and 8x8 elements; the first one gets it."""
    return trace_of(
        f"""func.func @main(%arg0: tensor<16x8xf32> {sharded('[{"a"}, {?}]')},
                            %arg1: tensor<8x8xf32> {sharded('[{?}, {"a"}]')}) -> tensor<16x8xf32> {{
          %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0]
              : (tensor<16x8xf32>, tensor<8x8xf32>) -> tensor<16x8xf32>
          return %0 : tensor<16x8xf32>
        }}"""
    )


@cache
def priorities() -> Trace:
    """Return the trace of a sum of a matrix with "a" and one with "b" of user priority 1."""
    return trace_of(
        f"""func.func @main(%arg0: tensor<8x8xf32> {sharded('[{"a"}, {?}]')},
                            %arg1: tensor<8x8xf32> {sharded('[{?}, {"b"}p1]')}) -> tensor<8x8xf32> {{
          %0 = stablehlo.add %arg0, %arg1 : tensor<8x8xf32>
          return %0 : tensor<8x8xf32>
        }}"""
    )


@cache
def group() -> Trace:
    """Return the trace of two tensors in a sharding group, of which one gets "a" from its operand."""
    return trace_of(
        f"""func.func @main(%arg0: tensor<8xf32> {sharded('[{"a"}]')}, %arg1: tensor<8xf32>)
            -> (tensor<8xf32>, tensor<8xf32>) {{
          %0 = stablehlo.negate %arg0 : tensor<8xf32>
          %1 = stablehlo.tanh %arg1 : tensor<8xf32>
          sdy.sharding_group %0 group_id = 1 : tensor<8xf32>
          sdy.sharding_group %1 group_id = 1 : tensor<8xf32>
          return %0, %1 : tensor<8xf32>, tensor<8xf32>
        }}"""
    )
