"""Operators that quantize: sharded like their operands, with the numbers of one device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

import shardy_py as sdy
from tests.torch.simulated import simulated

pytestmark = pytest.mark.torch
RANGE = (-128, 127, torch.int8)
LAST = (None, "m")
FIRST = ("m", None)


def _ops() -> Any:
    import torch.ao.quantization.fx._decomposed  # defines the operators

    return torch.ops.quantized_decomposed


class Quantized(nn.Module):
    """A function of the operators and of a tensor."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function
        self.register_buffer("scales", torch.linspace(0.01, 0.1, 8))
        self.register_buffer("zeros", torch.zeros(8, dtype=torch.int64))

    def forward(self, x: torch.Tensor) -> Any:
        return self.function(_ops(), x, self.scales, self.zeros)


def _per_tensor(ops: Any, x: torch.Tensor, scales: torch.Tensor, zeros: torch.Tensor) -> torch.Tensor:
    return ops.dequantize_per_tensor(ops.quantize_per_tensor(x, 0.1, 0, *RANGE), 0.1, 0, *RANGE)


def _per_channel(ops: Any, x: torch.Tensor, scales: torch.Tensor, zeros: torch.Tensor) -> torch.Tensor:
    codes = ops.quantize_per_channel(x, scales, zeros, 0, *RANGE)
    return ops.dequantize_per_channel(codes, scales, zeros, 0, *RANGE)


@pytest.mark.parametrize("spec", [FIRST, LAST])
@pytest.mark.parametrize("function", [_per_tensor, _per_channel])
def test_what_is_quantized_stays_sharded(function: Callable[..., Any], spec: tuple[str | None, ...]) -> None:
    """Nothing is moved, along channels nor across."""
    model, x = Quantized(function), torch.randn(8, 6)
    exported = torch.export.export(model, (x,)).run_decompositions({})
    result = sdy.propagate(exported, {"m": 2}, in_shardings={"x": spec}, strict=True)
    assert result.redistributions == ()
    assert [[axis.name for axis in dim.axes] for dim in result.results[0].dim_shardings] == [
        [name] if name else [] for name in spec
    ]
    (got,) = simulated(exported, (x,), {"m": 2}, {"x": spec})
    torch.testing.assert_close(got, model(x))
