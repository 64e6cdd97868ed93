"""Small modules, and what their explanations say in short."""

from __future__ import annotations

from typing import Any

from shardy_py import Result, propagate
from shardy_py.explain.answer.moves import Refusal

MESH = 'sdy.mesh @mesh = <["a"=2, "b"=4]>\n'


def traced(body: str, *, mesh: str = MESH, **options: Any) -> Result:
    """Propagate a module with a trace."""
    return propagate(mesh + body, trace=True, **options)


def sharded(dims: str) -> str:
    """Return the attributes of an argument or result with a sharding."""
    return f"{{sdy.sharding = #sdy.sharding<@mesh, {dims}>}}"


def why_not(result: Result, value: str, dim: int, axis: str) -> list[Refusal]:
    """Return the reasons why an axis is not on a dimension, by the names of the given module."""
    (dimension,) = result.explain(value, dim, names="input").dimensions
    (missing,) = [item for item in dimension.missing if item.axis == axis]
    return list(missing.reasons)


def losers(result: Result, value: str, dim: int, axis: str) -> list[tuple[str, str]]:
    """Return code and losing candidate of each reason that has one."""
    return [
        (item.code, f"{item.candidate.value} dim {item.candidate.dimension}")
        for item in why_not(result, value, dim, axis)
        if item.candidate is not None
    ]


def way(result: Result, value: str, dim: int, axis: str) -> list[str]:
    """Return the dimensions through which an axis came, the last one first, then the annotation it comes from."""
    (dimension,) = result.explain(value, dim, names="input").dimensions
    (chain,) = [item for item in dimension.present if item.axis == axis]
    return [f"{move.value} dim {move.dimension}" for move in chain.moves] + [chain.origin.annotation]


NAMED = f"""func.func @main(%arg0: tensor<8x16xf32> {sharded('[{"a"}, {?}]')} loc("params['w']"),
    %arg1: tensor<16x4xf32> {sharded('[{"b"}, {"a"}]')}) -> (tensor<8x4xf32> {{jax.result_info = "result['y']"}}) {{
  %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0]
      : (tensor<8x16xf32>, tensor<16x4xf32>) -> tensor<8x4xf32> loc("model.py":12:3)
  %1 = stablehlo.negate %0 : tensor<8x4xf32> loc("model.py":1:3)
  %2 = stablehlo.negate %1 : tensor<8x4xf32> loc("model.py":120:3)
  return %2 : tensor<8x4xf32>
}}"""
"""A program with names of the user's and places."""
