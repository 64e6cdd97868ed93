"""Models that PyTorch exports to ONNX with a symbolic batch run on devices as on one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

pytest.importorskip("onnxscript", reason="models are exported by the package onnxscript")
pytest.importorskip("onnxruntime", reason="models are run by onnxruntime: pip install 'shardy_py[onnx]'")

import onnx

import shardy_py as sdy
from tests.unit.onnx.onnx_models import run_whole

pytestmark = pytest.mark.torch


class ResidualNetwork(nn.Module):
    """Convolutions with a shortcut, and a classifier."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm = nn.Conv2d(4, 8, 3, padding=1), nn.BatchNorm2d(8)
        self.second, self.classes = nn.Conv2d(8, 8, 3, padding=1), nn.Linear(8, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = functional.relu(self.norm(self.first(x)))
        y = functional.max_pool2d(functional.relu(y + self.second(y)), 2)
        return self.classes(functional.adaptive_avg_pool2d(y, 1).flatten(1))


class Decoder(nn.Module):
    """A layer of a language model, with causal attention and gates."""

    def __init__(self) -> None:
        super().__init__()
        self.rows, self.norm = nn.Embedding(32, 16), nn.RMSNorm(16)
        self.heads, self.joined = nn.Linear(16, 48), nn.Linear(16, 16)
        self.gate, self.up, self.down = nn.Linear(16, 32), nn.Linear(16, 32), nn.Linear(32, 16)
        self.logits = nn.Linear(16, 32, bias=False)

    def forward(self, numbers: torch.Tensor) -> torch.Tensor:
        x = self.rows(numbers)
        batch, length, _ = x.shape
        parts = self.heads(self.norm(x)).chunk(3, -1)
        q, k, v = (part.view(batch, length, 2, 8).transpose(1, 2) for part in parts)
        mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.joined(mixed.transpose(1, 2).reshape(batch, length, 16))
        y = self.norm(x)
        return self.logits(x + self.down(functional.silu(self.gate(y)) * self.up(y)))


class VisionTransformer(nn.Module):
    """Patches behind a token of the class, which is repeated for each image, and attention."""

    def __init__(self) -> None:
        super().__init__()
        self.patches, self.norm = nn.Conv2d(3, 16, 4, 4), nn.LayerNorm(16)
        self.token, self.positions = nn.Parameter(torch.randn(1, 1, 16)), nn.Parameter(torch.randn(1, 5, 16))
        self.attention, self.classes = nn.MultiheadAttention(16, 2, batch_first=True), nn.Linear(16, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        tokens = self.patches(x).flatten(2).transpose(1, 2)
        tokens = torch.cat([self.token.expand(x.shape[0], -1, -1), tokens], 1) + self.positions
        y = self.norm(tokens)
        return self.classes((tokens + self.attention(y, y, y, need_weights=False)[0])[:, 0])


class DetectionHead(nn.Module):
    """Boxes and scores of a grid, the best of which are gathered."""

    def __init__(self) -> None:
        super().__init__()
        self.maps = nn.Conv2d(8, 6, 1)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        boxes, scores = self.maps(x).flatten(2).transpose(1, 2).split([4, 2], -1)
        best, numbers = scores.sigmoid().amax(-1).topk(4)
        return boxes.gather(1, numbers.unsqueeze(-1).expand(-1, -1, 4)), best


MODELS: dict[str, tuple[Callable[[], nn.Module], Callable[[int], torch.Tensor]]] = {
    "residual_network": (ResidualNetwork, lambda batch: torch.randn(batch, 4, 8, 8)),
    "decoder": (Decoder, lambda batch: torch.randint(0, 32, (batch, 8))),
    "vision_transformer": (VisionTransformer, lambda batch: torch.randn(batch, 3, 8, 8)),
    "detection_head": (DetectionHead, lambda batch: torch.randn(batch, 8, 6, 6)),
}


@pytest.mark.parametrize("name", MODELS)
def test_an_exported_model_runs_on_devices(name: str) -> None:
    """Local models keep the symbol, and compute for several batches what one device computes."""
    torch.manual_seed(0)
    make, sample = MODELS[name]
    exported: Any = torch.onnx.export(
        make().eval(), (sample(4),), dynamo=True, verbose=False, dynamic_shapes=({0: torch.export.Dim("batch")},)
    )
    model = exported.model_proto
    (info,) = model.graph.input
    weights = {item.name: onnx.numpy_helper.to_array(item) for item in model.graph.initializer}
    matrix = next(name for name, array in weights.items() if array.ndim > 1 and array.shape[0] % 2 == 0)
    for shardings in ({info.name: ["d"]}, {info.name: ["d"], matrix: ["m"]}):
        result = sdy.propagate(model, {"d": 2, "m": 2}, in_shardings=shardings, explicit_collectives=True)
        assert result.coverage.is_complete
        local = result.local()
        for batch in (4, 6):
            x = sample(batch).numpy()
            arrays = local.run(*[weights.get(item, x) for item in result.program.origin.argument_names])
            for array, expected in zip(arrays, run_whole(model, {info.name: x}), strict=True):
                np.testing.assert_allclose(array, expected, rtol=2e-4, atol=2e-4)
