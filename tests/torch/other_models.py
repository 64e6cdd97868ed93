"""Models of other kinds than decoders, small, each with an input and shardings of parameters by glob."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from attrs import frozen
from torch import nn
from torch.nn import functional


@frozen
class OtherModel:
    """A model, its inputs for a batch, and shardings by glob."""

    make: Callable[[], nn.Module]
    inputs: Callable[[int], tuple[torch.Tensor, ...]]
    shardings: Mapping[str, Any]


def _floats(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(5))


def _numbers(limit: int, *shape: int) -> torch.Tensor:
    return torch.randint(0, limit, shape, generator=torch.Generator().manual_seed(6))


class GroupNormNet(nn.Module):
    """Convolutions with group norms, strides, dilation, a grouped one, a transposed one and upsampling."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 16, 3, padding=1)
        self.norm1 = nn.GroupNorm(4, 16)
        self.down = nn.Conv2d(16, 32, 3, stride=2, padding=1, groups=4)
        self.norm2 = nn.GroupNorm(8, 32)
        self.wide = nn.Conv2d(32, 16, 3, padding=2, dilation=2)
        self.up = nn.ConvTranspose2d(16, 8, 2, stride=2)
        self.head = nn.Linear(8 * 16, 10)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        x = functional.silu(self.norm1(self.stem(x)))
        y = functional.gelu(self.norm2(self.down(x)))
        y = functional.instance_norm(self.wide(y))
        y = self.up(y) + functional.interpolate(functional.avg_pool2d(x, 2)[:, :8], scale_factor=2.0)
        y = functional.pixel_unshuffle(functional.pixel_shuffle(y, 2), 2)
        pooled = functional.adaptive_avg_pool2d(y, (4, 4))
        return self.head(pooled.flatten(1)), functional.max_pool2d(y, 3, 2, 1)


class Translator(nn.Module):
    """An encoder and a decoder of PyTorch's own layers, with cross attention and masks of padding."""

    def __init__(self) -> None:
        super().__init__()
        self.source, self.target = nn.Embedding(32, 16, padding_idx=0), nn.Embedding(32, 16)
        self.transformer = nn.Transformer(16, 4, 1, 1, 32, dropout=0.1, batch_first=True)
        self.head = nn.Linear(16, 32)

    def forward(self, source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        mask = nn.Transformer.generate_square_subsequent_mask(target.shape[1])
        padded = (source == 0) & (torch.arange(source.shape[1]) > 0)
        x = self.transformer(
            *(self.source(source), self.target(target)),
            tgt_mask=mask,
            src_key_padding_mask=padded,
            memory_key_padding_mask=padded,
            tgt_is_causal=True,
        )
        return functional.log_softmax(self.head(x), -1)


class Recurrent(nn.Module):
    """An LSTM, a GRU behind it, and a cell that is stepped by hand."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(8, 16, batch_first=True, bidirectional=True)
        self.gru = nn.GRU(32, 16)
        self.cell = nn.LSTMCell(16, 8)
        self.head = nn.Linear(8, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x, _ = self.lstm(x)
        x, _ = self.gru(x.transpose(0, 1))
        h = c = x.new_zeros(x.shape[1], 8)
        for step in x.unbind(0):
            h, c = self.cell(step, (h, c))
        return torch.tanh(self.head(h))


class Ranker(nn.Module):
    """Bags of embeddings, places by cumulative sums, writes by index, the best of a row, masks."""

    def __init__(self) -> None:
        super().__init__()
        self.bag = nn.EmbeddingBag(32, 16, mode="mean")
        self.items = nn.Embedding(32, 16)
        self.score = nn.Linear(16, 6, bias=False)

    def forward(self, history: torch.Tensor, items: torch.Tensor, weights: torch.Tensor) -> tuple[torch.Tensor, ...]:
        user = self.bag(history)
        known = self.items(items)
        places = (items > 3).long().cumsum(1).clamp(max=items.shape[1] - 1)
        moved = torch.zeros_like(weights).scatter_add(1, places, weights)
        rows = torch.arange(items.shape[0]).unsqueeze(1).expand_as(items)
        written = torch.zeros(items.shape[0], items.shape[1] + 2).index_put((rows, places), weights, accumulate=True)
        values, best = (known @ user.unsqueeze(-1)).squeeze(-1).masked_fill(items == 0, float("-inf")).topk(3, dim=1)
        chosen = known.gather(1, best.unsqueeze(-1).expand(-1, -1, known.shape[-1]))
        finite = torch.where(values.isfinite(), values, 0.0)
        scores = self.score(functional.normalize(chosen, dim=-1)) * finite.unsqueeze(-1)
        order = moved.argsort(dim=1, descending=True, stable=True)
        return scores.logsumexp(1), written.flip(1), torch.take_along_dim(moved, order, 1), moved.roll(1, 1).tril()


class PatchNet(nn.Module):
    """A vision transformer with a convolution of patches, a class token, places and dropout that does nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.patch = nn.Conv2d(3, 16, 4, stride=4)
        self.token = nn.Parameter(torch.zeros(1, 1, 16))
        self.places = nn.Parameter(torch.zeros(1, 17, 16))
        self.drop = nn.Dropout(0.1)
        self.qkv, self.out = nn.Linear(16, 48), nn.Linear(16, 16)
        self.fc1, self.fc2 = nn.Linear(16, 32), nn.Linear(32, 16)
        self.norm1, self.norm2 = nn.LayerNorm(16), nn.RMSNorm(16)
        self.head = nn.Linear(16, 5)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        x = self.patch(image).flatten(2).transpose(1, 2)
        x = self.drop(torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1) + self.places)
        batch, rows, width = x.shape
        q, k, v = self.qkv(self.norm1(x)).reshape(batch, rows, 3, 4, width // 4).permute(2, 0, 3, 1, 4)
        scores = self.drop(torch.softmax(torch.einsum("bhid,bhjd->bhij", q, k) / 2, -1))
        x = x + self.out(torch.einsum("bhij,bhjd->bihd", scores, v).reshape(batch, rows, width))
        x = x + self.drop(self.fc2(functional.gelu(self.fc1(self.norm2(x)), approximate="tanh")))
        return self.head(x[:, 0])


ROWS = ("model", None)
OTHER_MODELS = {
    "group_norm_net": OtherModel(
        GroupNormNet, lambda n: (_floats(n, 3, 16, 16),), {"stem.weight": ("model", None, None, None)}
    ),
    "translator": OtherModel(
        Translator,
        lambda n: (_numbers(32, n, 6), _numbers(32, n, 5)),
        {"source.weight": ROWS, "*.linear1.weight": ROWS, "*.in_proj_weight": ROWS},
    ),
    "recurrent": OtherModel(Recurrent, lambda n: (_floats(n, 5, 8),), {"*.weight_*h_l0": ROWS}),
    "ranker": OtherModel(
        Ranker,
        lambda n: (_numbers(32, n, 4), _numbers(32, n, 6), _floats(n, 6)),
        {"bag.weight": (None, "model"), "items.weight": ROWS},
    ),
    "patch_net": OtherModel(
        PatchNet,
        lambda n: (_floats(n, 3, 16, 16),),
        {"patch.weight": ("model", None, None, None), "qkv.weight": ROWS, "fc1.weight": ROWS},
    ),
}
