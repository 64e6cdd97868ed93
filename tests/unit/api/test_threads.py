"""Propagation in many threads at once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

import shardy_py as sdy


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


def built(number: int) -> sdy.Program:
    """Return a program of a chain of products and sums whose shardings depend on a number."""
    axes = "xyz"[number % 3 :] + "xyz"[: number % 3]
    b = sdy.Builder(mesh={"x": 2, "y": 4, "z": 2})
    with b.function("main", [sdy.tensor(8, 16), sdy.tensor(16, 8), sdy.tensor(8, 8)]) as (x, w, c):
        b.shard(x, f'[{{"{axes[0]}"}}, {{"{axes[1]}", ?}}]')
        b.shard(c, f'[{{?}}, {{"{axes[2]}", ?}}]')
        y = c
        for step in range(2 + number % 5):
            y = b.op("toy.add", [b.op("toy.matmul", [x, w], [sdy.tensor(8, 8)]), y], [sdy.tensor(8, 8)])
            if step % 2:
                y = b.op("toy.transpose", [y], [sdy.tensor(8, 8)])
        b.return_(y)
    return b.build()


def test_threads_do_not_meet() -> None:
    """Sixteen threads that propagate different programs get what one thread gets."""
    pytest.importorskip("jaxlib")
    texts = [module(number) for number in range(48)]
    expected = [sdy.propagate(text).text for text in texts]
    with ThreadPoolExecutor(16) as pool:
        actual = list(pool.map(lambda text: sdy.propagate(text, trace=True).text, texts))
    assert actual == expected


def test_threads_share_what_is_known_of_ops() -> None:
    """Programs that are built, not parsed, of ops and meshes that no thread has met, in sixteen threads at once."""
    toy = sdy.Dialect("toy")
    toy.op("toy.matmul", rule="i k, k j -> i j", reduction="k")
    toy.op("toy.transpose", rule="i j -> j i")
    toy.op("toy.add", traits=[sdy.Elementwise])
    registry = sdy.Registry.of([toy])

    def propagate(number: int) -> str:
        return sdy.propagate(built(number), registry=registry).text

    with ThreadPoolExecutor(16) as pool:
        actual = list(pool.map(propagate, range(48)))
    assert actual == [propagate(number) for number in range(48)]
    assert len(set(actual)) == 15
