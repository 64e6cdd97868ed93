"""Padding of global programs: shapes divide afterwards, and results are what they were."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("jax", reason="programs run through XLA")

from shardy_py.errors import ShardyError
from shardy_py.frontends.mlir import import_module, parse_module, write_back
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.jax.unsharded import compile_unsharded
from shardy_py.local.pad_for_divisibility import PadForDivisibilityPass
from shardy_py.plugins import Registry
from shardy_py.transforms.run import run_on_attributes

MESH = 'sdy.mesh @mesh = <["x"=4, "y"=2]>\n'
REGISTRY = Registry.from_entry_points()
SECOND = '{}, {"x"}'


def pad(body: str) -> str:
    """Return a padded module as text."""
    program = import_module(parse_module(MESH + body))
    run_on_attributes(program, [PadForDivisibilityPass()], PassContext(REGISTRY))
    return str(write_back(program))


def result(dims: str) -> str:
    """Return the attribute of the sharding of a result."""
    return f"{{sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{dims}]>]>}}"


REDUCED = f"""func.func @main(%a: tensor<7x5xf32>) -> tensor<5xf32> {{
  %i = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %0 = sdy.all_slice [{{"x"}}, {{"y"}}] %a out_sharding=<@mesh, [{{"x"}}, {{"y"}}]> : tensor<7x5xf32>
  %1 = stablehlo.exponential %0 {result('{"x"}, {"y"}')} : tensor<7x5xf32>
  %2 = stablehlo.negate %1 {result('{"x"}, {"y"}')} : tensor<7x5xf32>
  %3 = stablehlo.reduce(%2 init: %i) applies stablehlo.maximum across dimensions = [0] {result('{"y"}')}
    : (tensor<7x5xf32>, tensor<f32>) -> tensor<5xf32>
  %4 = sdy.all_gather [{{"y"}}] %3 out_sharding=<@mesh, [{{}}]> : tensor<5xf32>
  return %4 : tensor<5xf32>
}}"""


def test_padded_programs_compute_what_the_program_does() -> None:
    """Padding is cut again, and no reduction sees it."""
    padded = pad(REDUCED)
    assert "tensor<8x6xf32>" in padded
    array = np.random.default_rng(0).normal(size=(7, 5)).astype(np.float32)
    # On one device the collectives hand on what they get, and the all-reduce of shards is not needed.
    for name in ("all_slice", "all_gather"):
        assert f"sdy.{name}" in padded
    (actual,) = compile_unsharded(padded, semantics=REGISTRY)(array)
    np.testing.assert_allclose(actual, (-np.exp(array)).max(axis=0), rtol=1e-6)


def test_zeros_are_not_put_in_twice() -> None:
    """What a slice padded with zeros is multiplied as it is; what another op made of it is masked first."""
    body = """func.func @main(%a: tensor<4x7xf32>, %b: tensor<7x4xf32>) -> tensor<4x4xf32> {{
      %0 = sdy.all_slice [{{}}, {{"x"}}] %a out_sharding=<@mesh, [{{}}, {{"x"}}]> : tensor<4x7xf32>
      %1 = sdy.all_slice [{{"x"}}, {{}}] %b out_sharding=<@mesh, [{{"x"}}, {{}}]> : tensor<7x4xf32>
      {between}
      %3 = stablehlo.dot_general {left}, %1, contracting_dims = [1] x [0]
        : (tensor<4x7xf32>, tensor<7x4xf32>) -> tensor<4x4xf32>
      return %3 : tensor<4x4xf32>
    }}"""
    other = f"%2 = stablehlo.cosine %0 {result(SECOND)} : tensor<4x7xf32>"
    assert pad(body.format(between="", left="%0")).count("stablehlo.select") == 0
    assert pad(body.format(between=other, left="%2")).count("stablehlo.select") == 1


def test_programs_that_divide_stay_as_they_are() -> None:
    """Nothing is padded where nothing has to be."""
    body = REDUCED.replace("7x5", "8x6").replace("<5x", "<6x")
    assert "stablehlo.pad" not in pad(body)


@pytest.mark.parametrize(
    ("signature", "message"),
    [
        ('(%a: tensor<7xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>})', "argument #0 has a non-divisible"),
        ('(%a: tensor<7xf32>) -> (tensor<7xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>})', "result #0 has a"),
    ],
)
def test_inputs_and_outputs_must_divide(signature: str, message: str) -> None:
    """A caller cannot pad for the pass, so that an uneven input or output is an error at its function."""
    end = "return %a : tensor<7xf32>" if "->" in signature else "return"
    with pytest.raises(ShardyError, match=message):
        pad(f"func.func @main{signature} {{ {end} }}")


def test_what_moves_padding_is_refused() -> None:
    """A reversal would bring the padding to the front, and the error says what to do."""
    body = f"""func.func @main(%a: tensor<7xf32>) -> tensor<7xf32> {{
      %0 = sdy.all_slice [{{"x"}}] %a out_sharding=<@mesh, [{{"x"}}]> : tensor<7xf32>
      %1 = stablehlo.reverse %0, dims = [0] {result('{"x"}')} : tensor<7xf32>
      %2 = sdy.all_gather [{{"x"}}] %1 out_sharding=<@mesh, [{{}}]> : tensor<7xf32>
      return %2 : tensor<7xf32>
    }}"""
    with pytest.raises(ShardyError, match="no padded form"):
        pad(body)
