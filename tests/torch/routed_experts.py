"""A mixture of experts that routes the tokens of each device for itself, for the tests."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

import shardy_py as sdy

EXPERTS = 4
_ROWS, _SLOTS = ("data",), (None, "data")


def dispatch(x: torch.Tensor, logits: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Return a buffer with the tokens of each expert, and where each token is in it, with its weights."""
    weights, chosen = logits.softmax(-1).topk(2, -1)
    expert = chosen.flatten()
    ahead = functional.one_hot(expert, EXPERTS)
    slot = ((ahead.cumsum(0) - 1) * ahead).sum(-1)
    buffer = x.new_zeros(EXPERTS, 2 * x.shape[0], x.shape[1])
    return buffer.index_put((expert, slot), x.repeat_interleave(2, 0)), expert, slot, weights


def combine(y: torch.Tensor, expert: torch.Tensor, slot: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """Return the weighted sum of what the experts made of each token."""
    return (y[expert, slot].view(weights.shape[0], 2, -1) * weights[..., None]).sum(1)


class RoutedExperts(nn.Module):
    """A router, and experts as batched products.

    Args:
        axis: The axis of the mesh that the experts are to be sharded over, or None.
    """

    def __init__(self, axis: str | None = None) -> None:
        super().__init__()
        self.axis, self.gate = axis, nn.Linear(8, EXPERTS, bias=False)
        self.w1, self.w2 = (nn.Parameter(torch.randn(EXPERTS, *shape) * 0.2) for shape in ((8, 16), (16, 8)))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        route = sdy.torch.local_map(dispatch, [_SLOTS, _ROWS, _ROWS, _ROWS], [_ROWS, _ROWS])
        buffer, *places = route(x, self.gate(x))
        y = torch.bmm(torch.bmm(self._by_expert(buffer), self.w1).relu(), self.w2)
        return sdy.torch.local_map(combine, _ROWS, [_SLOTS, _ROWS, _ROWS, _ROWS])(self._by_expert(y), *places)

    def _by_expert(self, x: torch.Tensor) -> torch.Tensor:
        return x if self.axis is None else sdy.torch.with_sharding_constraint(x, (self.axis,))
