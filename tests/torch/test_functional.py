"""Programs that write to tensors in place, as an export without decompositions gives them."""

from __future__ import annotations

from copy import deepcopy

import pytest
import torch
from torch.fx.experimental.proxy_tensor import make_fx

import shardy_py as sdy
from shardy_py.targets.torch import make_local_torch_program
from tests.torch.simulated import simulated

pytestmark = pytest.mark.torch


class Writes(torch.nn.Module):
    """Writes to a part of a tensor, to a view of it, and to buffers."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = torch.nn.BatchNorm1d(8)
        self.register_buffer("total", torch.ones(8))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = torch.tanh(x)
        y[:, 1:3] = 0.5
        part = y[:, 2:4]
        part.add_(x[:, 2:4])
        self.total.add_(x.sum(0))
        return self.norm(y).relu_(), y * self.total


class Strided(torch.nn.Module):
    """Looks at places in the memory of a transposed tensor."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.as_strided(x.mT, (2, 4), (4, 1))


def _viewed(x: torch.Tensor) -> torch.Tensor:
    y = torch.tanh(x)
    y[:, 1:3].add_(1)
    return y


def _unviewed(x: torch.Tensor) -> torch.Tensor:
    left, right = torch.tanh(x).add_(1).chunk(2, 1)
    return left.mul_(2) + right.detach()


def test_writes_through_views_are_seen() -> None:
    """An export as it is gives what one process computes; buffers are results, too."""
    module, x = Writes(), torch.randn(5, 8)
    exported = torch.export.export(module, (x,))
    assert any(str(node.target).startswith("aten.add_.") for node in exported.graph.nodes)
    result = sdy.propagate(exported, {"a": 2}, in_shardings={"x": ("a",)})
    assert "total" in {output.writes for output in result.program.origin.outputs}
    changed = deepcopy(module)
    want = changed(x)
    got = simulated(result.program.origin.native, (x,), {"a": 2}, {"x": ("a",)})
    assert any(torch.allclose(item, changed.norm.running_mean) for item in got)
    for item in want:
        assert any(item.shape == one.shape and torch.allclose(item, one, atol=1e-5) for one in got)


def test_a_graph_that_writes_to_views_is_refused() -> None:
    """The error says which node does so; writes that no other tensor shows are as good as new tensors."""
    x = torch.randn(4, 8)
    with pytest.raises(sdy.UnsupportedError, match="writes to slice_1, whose elements others read"):
        sdy.propagate(make_fx(_viewed, tracing_mode="fake")(x), {"a": 2})
    graph = make_fx(_unviewed, tracing_mode="fake")(x)
    assert "add_" in graph.code
    result = sdy.propagate(graph, {"a": 2}, in_shardings={0: ("a",)})
    assert not result.redistributions
    local = make_local_torch_program(result._explicit, result.registry, strict=True)
    torch.testing.assert_close(local.simulate(x)[0], _unviewed(x))


def test_places_in_memory_of_a_view_are_refused() -> None:
    """Devices have other memory; a tensor of its own is whole on each."""
    program = torch.export.export(Strided(), (torch.randn(4, 8),))
    with pytest.raises(sdy.UnsupportedError, match="looks at places in memory of a view"):
        sdy.propagate(program, {"a": 2})
