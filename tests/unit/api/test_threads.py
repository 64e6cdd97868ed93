"""Propagation in many threads at once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

import shardy_py as sdy

pytest.importorskip("jaxlib")


def module(number: int) -> str:
    """Return a module whose shardings depend on a number."""
    axis = "xyz"[number % 3]
    return f"""sdy.mesh @mesh = <["x"=2, "y"=2, "z"=2]>
func.func @main(%a: tensor<8x{8 + number}xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{"{axis}"}}, {{?}}]>}})
    -> tensor<8x{8 + number}xf32> {{
  %0 = stablehlo.negate %a : tensor<8x{8 + number}xf32>
  %1 = stablehlo.add %0, %a : tensor<8x{8 + number}xf32>
  return %1 : tensor<8x{8 + number}xf32>
}}
"""


def test_threads_do_not_meet() -> None:
    """Sixteen threads that propagate different programs get what one thread gets."""
    texts = [module(number) for number in range(48)]
    expected = [sdy.propagate(text).text for text in texts]
    with ThreadPoolExecutor(16) as pool:
        found = list(pool.map(lambda text: sdy.propagate(text, trace=True).text, texts))
    assert found == expected
