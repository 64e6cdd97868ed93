"""Functions of shards inside of models: what they move, what their gradients are, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.distributed.tensor import Partial, Replicate, Shard

import shardy_py as sdy
from tests.torch.routed_experts import RoutedExperts
from tests.torch.simulated import simulated

pytestmark = pytest.mark.torch
MESH = {"data": 2, "model": 2}


class Mapped(nn.Module):
    """A linear layer, and a function of its shards."""

    def __init__(self, function: Callable[..., Any], outputs: Any, inputs: Any) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.function, self.outputs, self.inputs = function, outputs, inputs

    def forward(self, x: torch.Tensor) -> Any:
        return sdy.torch.local_map(self.function, self.outputs, self.inputs)(self.linear(x))


@pytest.mark.parametrize(("axis", "ahead"), [(None, 0), ("data", 2)])
def test_routing_stays_local(axis: str | None, ahead: int, mesh: Any) -> None:
    """Experts of all devices move nothing ahead; experts of their own devices two all-to-alls, and as many behind."""
    x = torch.randn(16, 8, requires_grad=True)
    parallel = sdy.parallelize(RoutedExperts(axis), mesh, x, {"x": ("data",)})
    (step,) = parallel.sdy_program.steps.values()
    graph = step.graphs.forward.graph
    started = [str(node.target).split(".")[1] for node in graph.nodes if "_c10d" in str(node.target)]
    assert [name for name in started if name != "wait_tensor"] == ["all_to_all_single"] * ahead
    assert step.counts.get("all_to_all", 0) == 2 * ahead
    assert "all_gather" not in step.counts
    assert parallel.w1.placements == ((Shard(0) if axis else Replicate()), Replicate())


def test_each_device_computes_with_its_shard() -> None:
    """A function of all rows sees those of its device."""

    class Sorted(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            rows = ("data",)
            return sdy.torch.local_map(lambda x: x.sort(0).values, rows, [rows], device_mesh=MESH)(x)

    x = torch.randn(8, 3)
    exported = torch.export.export(Sorted(), (x,))
    (got,) = simulated(exported, (x,), MESH, {"x": ("data",)})
    assert torch.equal(got, torch.cat([rows.sort(0).values for rows in x.chunk(2)]))
    assert torch.equal(Sorted()(x), x.sort(0).values)
    assert not sdy.propagate(exported, MESH, in_shardings={"x": ("data",)}).redistributions


@pytest.mark.parametrize("kind", ["sum", "avg"])
def test_partial_results_are_reduced(kind: str, mesh: Any) -> None:
    """The sum, or the mean, over the devices is one all-reduce of the result."""
    partial = [Partial(kind), Replicate()]
    model = Mapped(lambda x: x.sum(), partial, [[Shard(0), Replicate()]])
    step = next(iter(sdy.parallelize(model, mesh, torch.randn(8, 4), {"x": ("data",)}).sdy_program.steps.values()))
    targets = [str(node.target) for node in step.graphs.forward.graph.nodes]
    assert targets.count("_c10d_functional.all_reduce.default") == 1


def test_what_does_not_fit_is_refused(mesh: Any) -> None:
    """Sizes that do not divide, placements of another number, partial arguments, and tensors that are no arguments."""
    rows = [Shard(0), Replicate()]

    def refused(function: Callable[..., Any], outputs: Any, inputs: Any, size: int = 8) -> str:
        with pytest.raises(sdy.ShardyError, match="local-map") as caught:
            sdy.parallelize(Mapped(function, outputs, inputs), mesh, torch.randn(size, 4))
        return str(caught.value)

    assert "has the size 5, which 2 devices do not divide" in refused(torch.relu, rows, [rows], 5)
    assert "has 1 arguments, and there are placements of 2" in refused(torch.relu, rows, [rows, rows])
    assert "cannot be placed as Partial(sum)" in refused(torch.relu, rows, [[Partial(), Replicate()]])
    assert "cannot be partial by max" in refused(torch.relu, [Partial("max"), Replicate()], [rows])

    class Captured(Mapped):
        def forward(self, x: torch.Tensor) -> Any:
            return sdy.torch.local_map(self.linear, rows, [rows])(x)

    with pytest.raises(sdy.UnsupportedError, match="are used outside of it"):
        sdy.parallelize(Captured(torch.relu, rows, [rows]), mesh, torch.randn(8, 4))
