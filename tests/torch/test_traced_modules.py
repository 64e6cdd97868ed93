"""What PyTorch traces in another way than it runs: recurrent layers, checks of matrices, replaced parameters."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn
from torch.func import functional_call

import shardy_py as sdy

pytestmark = pytest.mark.torch


class Recurrent(nn.Module):
    """Layers with dropout between them."""

    def __init__(self, kind: Any, **options: Any) -> None:
        super().__init__()
        self.layers = kind(4, 4, num_layers=2, dropout=0.3, **options)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        output, state = self.layers(x)
        return output.sum() + sum(item.square().sum() for item in (state if isinstance(state, tuple) else (state,)))


RECURRENT = {
    "lstm": (nn.LSTM, {"bidirectional": True, "proj_size": 2}),
    "gru": (nn.GRU, {"batch_first": True}),
    "rnn": (nn.RNN, {"bidirectional": True, "batch_first": True, "bias": False}),
}


@pytest.mark.parametrize("name", RECURRENT)
def test_recurrent_layers_drop_out_between_each_other(name: str, mesh: Any) -> None:
    """With the numbers that the module draws; what PyTorch calls while it traces leaves this dropout out."""
    kind, options = RECURRENT[name]
    model, x = Recurrent(kind, **options), torch.randn(2, 2, 4)
    parallel = sdy.parallelize(model, mesh, x)
    values = []
    for module in (model, parallel):
        torch.manual_seed(1)
        values.append(module(x))
        values[-1].backward()
    torch.testing.assert_close(*values)
    for plain, sharded in zip(model.parameters(), parallel.parameters(), strict=True):
        torch.testing.assert_close(plain.grad, sharded.grad.to_local())


def test_recurrent_layers_of_shards_are_code(mesh: Any) -> None:
    """Also where a weight is sharded, and the layer gathers it."""
    parallel = sdy.parallelize(nn.LSTM(6, 8), mesh, torch.randn(5, 4, 6), {"weight_ih_l0": ("model", None)})
    output, _ = parallel(torch.randn(5, 4, 6))
    assert output.shape == (5, 4, 8)


def test_matrices_that_are_checked_are_solved(mesh: Any) -> None:
    """Factors, solutions and inverses, whose checks PyTorch traces as effects."""

    class Process(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.noise = nn.Parameter(torch.zeros(()))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            kernel = x @ x.mT + self.noise.exp() * torch.eye(x.shape[-2])
            factor = torch.linalg.cholesky(kernel)
            return torch.linalg.solve(kernel, x).sum() + torch.linalg.inv(factor).sum() + torch.linalg.det(kernel).sum()

    model, x = Process(), torch.randn(2, 4, 6)
    parallel = sdy.parallelize(model, mesh, x)
    values = model(x), parallel(x)
    torch.testing.assert_close(*values)
    for value in values:
        value.backward()
    torch.testing.assert_close(model.noise.grad, parallel.noise.grad.to_local())


def test_functions_may_replace_parameters(mesh: Any) -> None:
    """`functional_call` puts tensors in their places: computed ones, whole ones, and ones that are placed otherwise."""
    from torch.distributed.tensor import Replicate, distribute_tensor

    model, x = nn.Linear(8, 4), torch.randn(2, 8)
    parallel = sdy.parallelize(model, mesh, x, {"weight": (None, None), "bias": (None,)})
    weight, bias = torch.randn(4, 8), torch.randn(4)
    for replaced in (
        {"weight": weight, "bias": bias},
        {"weight": distribute_tensor(weight, mesh, [Replicate(), Replicate()]), "bias": bias},
    ):
        torch.testing.assert_close(functional_call(parallel, replaced, (x,)), nn.functional.linear(x, weight, bias))
    doubled = {name: tensor * 2 for name, tensor in parallel.named_parameters()}
    functional_call(parallel, doubled, (x,)).sum().backward()
    torch.testing.assert_close(parallel.bias.grad.to_local(), torch.full((4,), 4.0))
    cut = sdy.parallelize(model, mesh, x, {"weight": ("model", None)}, whole_outputs=False)
    placed = distribute_tensor(weight, mesh, [Replicate(), Replicate()])
    output = functional_call(cut, {"weight": placed, "bias": bias}, (x,))
    torch.testing.assert_close(output.to_local(), nn.functional.linear(x, weight, bias)[:, :2])
