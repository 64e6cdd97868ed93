"""Statistics of layer norms that are cut along a dimension: PyTorch reads them by address."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

import shardy_py as sdy
from tests.torch.simulated import simulated

pytestmark = pytest.mark.torch
SHARDINGS = {"gradient": (None, "model", None), **dict.fromkeys(("mean", "rstd"), (None, None, None))}


class Backward(nn.Module):
    """The gradient of the input of a layer norm."""

    def forward(self, gradient: torch.Tensor, x: torch.Tensor, mean: torch.Tensor, rstd: torch.Tensor) -> torch.Tensor:
        operands = gradient, x, [16], mean, rstd, None, None, [True, False, False]
        return torch.ops.aten.native_layer_norm_backward.default(*operands)[0]


def _inputs() -> tuple[torch.Tensor, ...]:
    gradient, x = torch.randn(4, 6, 16), torch.randn(4, 6, 16)
    return gradient, x, *torch.ops.aten.native_layer_norm.default(x, [16], None, None, 1e-5)[1:]


def test_devices_read_their_statistics() -> None:
    """Each device has the statistics of whole sequences, and the gradients of a part."""
    inputs = _inputs()
    (got,) = simulated(torch.export.export(Backward(), inputs), inputs, {"model": 2}, SHARDINGS)
    torch.testing.assert_close(got, Backward()(*inputs))


def test_graphs_read_their_statistics(mesh: Any) -> None:
    """The code of a parallel module computes what the module does of its part."""
    inputs = _inputs()
    parallel = sdy.parallelize(Backward(), mesh, inputs, SHARDINGS)
    (step,) = parallel.sdy_program.steps.values()
    ports = step.arguments
    assert str(ports[0].placements) == "(Replicate(), Shard(dim=1))"
    parts = [item[:, :3] if "Shard" in str(port.placements) else item for item, port in zip(inputs, ports, strict=True)]
    got = step.graphs.inference(*parts)[0]
    torch.testing.assert_close(got, Backward()(*inputs)[:, :3])
