"""A training step with Adam on shards."""

from __future__ import annotations

from collections import Counter

import pytest
import torch
from torch import nn
from torch.func import functional_call
from torch.fx.experimental.proxy_tensor import make_fx
from torch.nn import functional

import shardy_py as sdy
from shardy_py.torch.parallel import make_local_torch_program
from tests.torch.models import Decoder
from tests.torch.training import largest_difference, make_state, propagated_step, traced_step

pytestmark = pytest.mark.torch


def test_a_training_step_gives_the_loss_and_the_state_of_one_process() -> None:
    """Forward, backward and Adam are one graph; loss, parameters, moments and the step number are equal."""
    model = Decoder()
    state = make_state(model)
    tokens, labels = torch.randint(0, 32, (4, 8)), torch.randint(0, 32, (4, 8))
    graph = traced_step(model, state, (tokens, labels))
    result = propagated_step(graph, state, {"data": 2, "model": 2})
    local = make_local_torch_program(result.torch_forms.explicit, result.registry, strict=True)
    inputs = [*state.values(), tokens, labels]
    values = local.simulate(*inputs)
    actual = [values[output.result] for output in local.origin.outputs if output.result is not None]
    assert largest_difference(actual, graph(*inputs)) <= 1e-5
    assert Counter(item.kind for item in result.redistributions)["all_reduce"] > len(list(model.parameters())) // 2


class Mixed(nn.Module):
    """Bags of embeddings, attention with dropout, random slopes, a transposed convolution and a batch norm."""

    def __init__(self) -> None:
        super().__init__()
        self.bags, self.norm = nn.EmbeddingBag(20, 8, mode="mean"), nn.BatchNorm1d(8)
        self.attention = nn.MultiheadAttention(8, 2, dropout=0.3, batch_first=True)
        self.up, self.slopes = nn.ConvTranspose1d(8, 6, 2, stride=2), nn.RReLU()

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.bags(tokens.flatten(0, 1)).view(*tokens.shape[:2], 8)
        x = x + self.attention(x, x, x, need_weights=False)[0]
        return functional.logsigmoid(self.up(self.norm(self.slopes(x).transpose(1, 2))))


@pytest.mark.parametrize("rows", [4, 5])
def test_a_step_in_training_mode_draws_and_counts_as_one_process_does(rows: int) -> None:
    """Gradients, statistics and the random numbers are equal, traced as it is and traced again without writes."""
    model = Mixed().train()
    names, state = [name for name, _ in model.named_parameters()], dict(model.named_parameters())
    state |= dict(model.named_buffers())

    def step(*given: torch.Tensor) -> list[torch.Tensor]:
        known = dict(zip(state, given, strict=False))
        parameters = {name: item.detach().requires_grad_() if name in names else item for name, item in known.items()}
        with torch.enable_grad():
            loss = functional_call(model, parameters, given[len(state) :]).square().mean()
            gradients = torch.autograd.grad(loss, [parameters[name] for name in names])
        return [loss.detach(), *gradients, *(known[name] for name in state if name not in names)]

    inputs = [*(item.detach().clone() for item in state.values()), torch.randint(0, 20, (rows, 4, 3))]
    graph = make_fx(step, tracing_mode="fake", _allow_non_fake_inputs=True)(*(item.clone() for item in inputs))
    again = torch.func.functionalize(graph, remove="mutations_and_views")
    for traced in (graph, make_fx(again, tracing_mode="fake")(*(item.clone() for item in inputs))):
        torch.manual_seed(4)
        want = graph(*(item.clone() for item in inputs))
        shardings = {0: (None, "b"), names.index("up.weight"): ("b", None, None), len(state): ("a",)}
        result = sdy.propagate(traced, {"a": 2, "b": 2}, in_shardings=shardings, strict=True)
        local = make_local_torch_program(result.torch_forms.explicit, result.registry)
        torch.manual_seed(4)
        for left, right in zip(local.simulate(*inputs), want, strict=True):
            torch.testing.assert_close(left, right, rtol=1e-5, atol=1e-6)
        assert result.redistributions
