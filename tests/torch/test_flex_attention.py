"""Attention whose scores a function changes: propagated, and run on shards, as the operators that it is made of."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import shardy_py as sdy
from tests.torch.simulated import simulated

pytestmark = pytest.mark.torch


class Attention(nn.Module):
    """Attention whose scores depend on the numbers of heads and places, and on a buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("slopes", torch.linspace(0.1, 1, 4))

    def forward(self, query: torch.Tensor, key: torch.Tensor) -> torch.Tensor:
        from torch.nn.attention.flex_attention import flex_attention

        def bias(
            score: torch.Tensor, b: torch.Tensor, h: torch.Tensor, i: torch.Tensor, j: torch.Tensor
        ) -> torch.Tensor:
            return score + (i - j) * self.slopes[h]

        return flex_attention(query, key, key, score_mod=lambda score, b, h, i, j: bias(score, b, h, i, j))


@pytest.mark.filterwarnings("ignore")
def test_heads_of_attention_are_sharded() -> None:
    """Nothing is moved, and each device changes scores by the numbers of its own heads."""
    query, key = torch.randn(2, 4, 6, 8), torch.randn(2, 4, 7, 8)
    exported = torch.export.export(Attention(), (query, key))
    shardings = {"query": (None, "m", None, None)}
    result = sdy.propagate(exported, {"m": 2}, in_shardings=shardings)
    assert str(result.results[0]) == '<@mesh, [{}, {"m"}, {}, {}]>'
    assert result.redistributions == ()
    assert result.coverage.missing == ()
    (got,) = simulated(exported, (query, key), {"m": 2}, shardings)
    torch.testing.assert_close(got, Attention()(query, key), atol=1e-5, rtol=1e-5)
