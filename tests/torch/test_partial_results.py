"""Partial results that wait for each other: they are combined once, with the numbers of one process."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest
import torch
from torch import nn

import shardy_py as sdy
from tests.torch.models import export
from tests.torch.simulated import simulated

pytestmark = pytest.mark.torch
MESH = {"model": 4}
INDICES = torch.tensor([[3, 0, 5], [1, 1, 2]])
OPERATORS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "select": lambda x: x.select(1, 2),
    "gather": lambda x: x.gather(1, INDICES),
    "index_select": lambda x: x.index_select(1, INDICES[0]),
    "flip": lambda x: x.flip(1),
    "roll": lambda x: x.roll(2, 1),
    "tril": lambda x: x.tril(),
    "zero": lambda x: 0 + x,
    "select_backward": lambda x: torch.ops.aten.select_backward(x, [2, 6, 1], 2, 0),
    "slice_backward": lambda x: torch.ops.aten.slice_backward(x, [2, 9], 1, 1, 7, 1),
}


class Summed(nn.Module):
    """The sum of a function of two products."""

    def __init__(self, function: Callable[[torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.function, self.first, self.second = function, nn.Linear(8, 6, bias=False), nn.Linear(8, 6, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.function(self.first(x)) + self.function(self.second(x))


class Experts(nn.Module):
    """Experts that are modules, summed by weights that are computed from the input."""

    def __init__(self) -> None:
        super().__init__()
        self.ups = nn.ModuleList(nn.Linear(8, 16) for _ in range(3))
        self.downs = nn.ModuleList(nn.Linear(16, 8, bias=False) for _ in range(3))
        self.gate = nn.Linear(8, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        weights, chosen = self.gate(x).softmax(-1).topk(2, -1)
        shares = torch.zeros(*x.shape[:-1], 3).scatter(-1, chosen, weights)
        pairs = enumerate(zip(self.ups, self.downs, strict=True))
        return sum(down(up(x).relu()) * shares[..., number, None] for number, (up, down) in pairs)


@pytest.mark.parametrize("name", OPERATORS)
def test_a_sum_is_combined_once(name: str) -> None:
    """Behind operators that move elements, or put them among zeros."""
    model, x = Summed(OPERATORS[name]), torch.randn(2, 8)
    program = export(model, x)
    shardings = {"*.weight": (None, "model")}
    (got,) = simulated(program, (x,), MESH, shardings)
    torch.testing.assert_close(got, model(x))
    moved = sdy.propagate(program, MESH, in_shardings=shardings).redistributions
    assert [item.kind for item in moved] == ["all_reduce"]


def test_experts_are_combined_once_also_for_their_gradients() -> None:
    """What a gate's gradient needs of each expert is a number for each token."""
    model, x = Experts(), torch.randn(2, 4, 8)
    program = export(model, x)
    shardings = {"ups.*.weight": ("model", None)}
    (got,) = simulated(program, (x,), MESH, shardings)
    torch.testing.assert_close(got, model(x))
    assert Counter(item.kind for item in sdy.propagate(program, MESH, in_shardings=shardings).redistributions) == {
        "all_reduce": 1
    }
