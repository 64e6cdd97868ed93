"""Buckets of collectives: how many calls a step makes, and what keeps two collectives apart."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
import torch
from torch import nn
from torch.distributed.tensor.debug import CommDebugMode
from torch.utils.checkpoint import checkpoint

import shardy_py as sdy

pytestmark = pytest.mark.torch
WIDTH = 16
SHARDINGS = {"x": '[{"data"}p0, {}]', "*.weight": '[{"data"}p1, {}]', "*.bias": '[{"data"}p1]'}


class Stack(nn.Module):
    """Layers with a function between them."""

    def __init__(self, *, is_checkpointed: bool = False) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(3))
        self.is_checkpointed = is_checkpointed

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = checkpoint(layer, x, use_reentrant=False) if self.is_checkpointed else layer(x)
            x = x.relu()
        return x.square().mean()


def counts(mesh: Any, bucket_bytes: float, *, is_checkpointed: bool = False) -> Counter[str]:
    """Return how many calls of each kind a step makes that has its parameters in shards over the batch."""
    model, x = Stack(is_checkpointed=is_checkpointed), torch.randn(64, WIDTH)
    parallel = sdy.parallelize(model, mesh["data"], x, SHARDINGS, bucket_bytes=bucket_bytes)
    (step,) = parallel.sdy_program.steps.values()
    with CommDebugMode() as counted:
        parallel(x).backward()
    # A checkpoint gathers some parameters again.
    assert is_checkpointed or sum(counted.get_comm_counts().values()) == sum(step.counts.values())
    shapes = {name: parameter.shape for name, parameter in model.named_parameters()}
    assert {name: parameter.grad.shape for name, parameter in parallel.named_parameters()} == shapes
    return Counter(step.counts)


def test_a_call_gathers_parameters_and_one_reduces_gradients(mesh: Any) -> None:
    """Weights and biases are six tensors; the sums of the loss go with no gradients."""
    single = counts(mesh, 0)
    assert (single["all_gather"], single["reduce_scatter"]) == (6, 6)
    together = counts(mesh, 25e6)
    assert (together["all_gather"], together["reduce_scatter"]) == (1, 1)
    assert together["all_reduce"] <= single["all_reduce"]


def test_a_bucket_has_room_for_some_bytes(mesh: Any) -> None:
    """Two weights of a kilobyte with their biases do not go into one of a kilobyte and a half."""
    some = counts(mesh, 1.5 * WIDTH * WIDTH * 4)
    assert (some["all_gather"], some["reduce_scatter"]) == (3, 3)


def test_what_is_computed_again_is_in_no_bucket(mesh: Any) -> None:
    """One tensor of a bucket that a checkpoint computes again would move all of them again."""
    assert counts(mesh, 25e6, is_checkpointed=True) == counts(mesh, 0, is_checkpointed=True)


def test_what_depends_on_each_other_is_apart(mesh: Any) -> None:
    """The second sum of a chain needs the result of the first one, and starts behind it."""
    x = torch.randn(64, WIDTH)

    class Chain(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return (x - x.mean(0)).square().sum(0) + (x - 1).square().sum(0)

    parallel = sdy.parallelize(Chain(), mesh["data"], x, {"x": ("data",)}, bucket_bytes=25e6)
    with torch.no_grad():
        assert parallel(x).shape == (WIDTH,)
    graph = next(iter(parallel.sdy_program.steps.values())).graphs.inference.graph
    calls = [str(node.target) for node in graph.nodes if "all_reduce" in str(node.target)]
    assert len(calls) == 2
