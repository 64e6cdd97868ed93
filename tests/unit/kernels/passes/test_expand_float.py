"""Rational functions."""

from __future__ import annotations

import pytest

pytest.importorskip("xdsl", reason="kernels need the extra 'codegen'")

pytest.importorskip("numpy", reason="kernels need the extra 'codegen'")

import math

import numpy as np

from shardy_py.kernels.launch.grid import Launch
from shardy_py.kernels.passes.float_conversions import ExpandFloat
from tests.unit.kernels.module_texts import after, run

TEXT = """func.func @main(%x: tensor<4096xf32>, %o: tensor<4096xf32>) -> tensor<4096xf32> attributes {xla.entry} {
  %t = gpu.thread_id x {xla.range = [0 : index, 1023 : index]}
  %b = gpu.block_id x {xla.range = [0 : index, 3 : index]}
  %i = xla_gpu.apply_indexing #xla_gpu.indexing_map<"(t, b) -> (b * 1024 + t), "
      "domain: t in [0, 1023], b in [0, 3]">(%t, %b)
  %v = tensor.extract %x[%i] : tensor<4096xf32>
  %w = math.NAME %v : f32
  %r = tensor.insert %w into %o[%i] : tensor<4096xf32>
  func.return %r : tensor<4096xf32>
}"""
LAUNCH = Launch((4, 1, 1), (1024, 1, 1))


@pytest.mark.parametrize(("name", "function", "ulps"), [("tanh", math.tanh, 5), ("erf", math.erf, 5)])
def test_rational_functions_are_near(name: str, function: object, ulps: float) -> None:
    """The rational function is some units of the last place away from the function, over all of its range."""
    text = after(TEXT.replace("NAME", name), ExpandFloat())
    assert f"math.{name}" not in text
    x = np.concatenate([np.linspace(-30, 30, 2048), np.geomspace(1e-6, 5, 2048)]).astype(np.float32)
    expected = np.array([function(value) for value in x.tolist()])  # type: ignore[operator]
    apart = np.abs(run(text, x, launch=LAUNCH).astype(np.float64) - expected) / np.spacing(
        np.abs(expected).astype(np.float32)
    )
    assert apart.max() <= ulps


def test_special_numbers() -> None:
    """Infinities give 1, zeros keep their sign, a NaN stays one."""
    special = np.array([math.inf, -math.inf, 0.0, -0.0, math.nan], np.float32)
    x = np.resize(special, 4096)
    found = run(after(TEXT.replace("NAME", "tanh"), ExpandFloat()), x, launch=LAUNCH)[:5]
    np.testing.assert_array_equal(found, [1, -1, 0, 0, math.nan])
    assert list(np.signbit(found[2:4])) == [False, True]
