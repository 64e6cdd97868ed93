"""The pass that makes the communication of permutation factors explicit."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("jax", reason="programs run through XLA")

from shardy_py.api.options import LocalOptions
from shardy_py.frontends.mlir import import_module, parse_module, write_back
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.jax.local import make_local_program
from shardy_py.jax.unsharded import compile_unsharded
from shardy_py.local.resolve_permutation_factors import ResolvePermutationFactorsPass
from shardy_py.plugins import Registry
from shardy_py.transforms.run import run_on_attributes

REGISTRY = Registry.from_entry_points()
SHARDED = '<@mesh, [{"a"}, {"b"}]>'
TEXT = f"""
sdy.mesh @mesh = <["a"=2, "b"=2]>
func.func @main(%a: tensor<4x8xf32> {{sdy.sharding = #sdy.sharding{SHARDED}}}) -> tensor<7x8xf32> {{
  %c = stablehlo.constant dense<1.5> : tensor<f32>
  %0 = stablehlo.OP {{sdy.sharding = #sdy.sharding_per_value<[{SHARDED}]>}} : TYPES
  %1 = sdy.all_gather [{{"a"}}, {{"b"}}] %0 out_sharding=<@mesh, [{{}}, {{}}]> : tensor<7x8xf32>
  return %1 : tensor<7x8xf32>
}}
"""
PAD = TEXT.replace("OP", "pad %a, %c, low = [-1, 0], high = [4, 0], interior = [0, 0]").replace(
    "TYPES", "(tensor<4x8xf32>, tensor<f32>) -> tensor<7x8xf32>"
)


def resolved(text: str, *, exchange: bool) -> str:
    """Return a program after the pass."""
    program = import_module(parse_module(text))
    run_on_attributes(program, [ResolvePermutationFactorsPass(enable_halo_exchange=exchange)], PassContext(REGISTRY))
    return str(write_back(program))


def test_exchanges_are_manual_computations() -> None:
    """An op that moves elements runs on shards, with permutes between devices, and computes the same."""
    text = resolved(PAD, exchange=True)
    assert "sdy.manual_computation" in text
    assert "[[2, 0], [3, 1]]" in text
    assert "sdy.reshard" not in text
    array = np.random.default_rng(0).normal(size=(4, 8)).astype(np.float32)
    local = make_local_program(text, registry=REGISTRY, options=LocalOptions())
    np.testing.assert_array_equal(local.run(array)[0], compile_unsharded(PAD, semantics=REGISTRY)(array)[0])


def test_without_exchanges_the_dimension_becomes_whole() -> None:
    """Operands and results are resharded along the permutation factor, and along no other one."""
    text = resolved(PAD, exchange=False)
    assert "sdy.manual_computation" not in text
    assert 'sdy.reshard %arg0 <@mesh, [{}, {"b"}]> : tensor<4x8xf32>' in text
    assert 'sdy.reshard %1 <@mesh, [{"a"}, {"b"}]> : tensor<7x8xf32>' in text


@pytest.mark.parametrize("exchange", [False, True])
def test_what_moves_nothing_stays(exchange: bool) -> None:
    """An op whose elements stay on their devices is left as it is."""
    text = PAD.replace("low = [-1, 0], high = [4, 0]", "low = [2, 0], high = [2, 0]").replace("7x8", "8x8")
    after = resolved(text, exchange=exchange)
    assert "sdy.manual_computation" not in after
    assert "sdy.reshard" not in after
