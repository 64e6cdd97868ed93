"""Six models to train as users write them, with what `trained_models` has not: bags, recurrences, skips, odd heads."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from tests.torch.trained_models import TrainedModel, _floats, _numbers, next_token_loss, smoothed_loss


def sinusoids(length: int, width: int) -> Tensor:
    """Return sines and cosines of positions."""
    scale = torch.exp(-math.log(10000) / (width // 2 - 1) * torch.arange(width // 2))
    angles = torch.arange(length)[:, None] * scale[None, :]
    return torch.cat([angles.sin(), angles.cos()], dim=1)


class SpeechAttention(nn.Module):
    """Attention whose keys have no bias, to the sequence itself or to another one."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value = (
            nn.Linear(width, width),
            nn.Linear(width, width, bias=False),
            nn.Linear(width, width),
        )
        self.out = nn.Linear(width, width)

    def forward(self, x: Tensor, other: Tensor | None = None, mask: Tensor | None = None) -> Tensor:
        source = x if other is None else other
        q, k, v = self.query(x), self.key(source), self.value(source)
        scale = (q.shape[-1] // self.heads) ** -0.25
        q = q.view(*q.shape[:2], self.heads, -1).permute(0, 2, 1, 3) * scale
        k = k.view(*k.shape[:2], self.heads, -1).permute(0, 2, 3, 1) * scale
        v = v.view(*v.shape[:2], self.heads, -1).permute(0, 2, 1, 3)
        scores = q @ k
        if mask is not None:
            scores += mask[: x.shape[1], : x.shape[1]]
        weights = functional.softmax(scores.float(), dim=-1).to(q.dtype)
        return self.out((weights @ v).permute(0, 2, 1, 3).flatten(start_dim=2))


class SpeechBlock(nn.Module):
    """A layer of the encoder, or with attention to the encoder's output of the decoder."""

    def __init__(self, width: int, heads: int, *, is_decoder: bool) -> None:
        super().__init__()
        self.attn, self.attn_ln = SpeechAttention(width, heads), nn.LayerNorm(width)
        self.cross_attn = SpeechAttention(width, heads) if is_decoder else None
        self.cross_attn_ln = nn.LayerNorm(width) if is_decoder else None
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
        self.mlp_ln = nn.LayerNorm(width)

    def forward(self, x: Tensor, audio: Tensor | None = None, mask: Tensor | None = None) -> Tensor:
        x = x + self.attn(self.attn_ln(x), mask=mask)
        if self.cross_attn is not None and self.cross_attn_ln is not None:
            x = x + self.cross_attn(self.cross_attn_ln(x), audio)
        return x + self.mlp(self.mlp_ln(x))


class SpeechModel(nn.Module):
    """Convolutions over a spectrogram, an encoder, and a decoder whose table is the head."""

    def __init__(self, width: int = 32, heads: int = 4, vocabulary: int = 51) -> None:
        super().__init__()
        self.conv1, self.conv2 = nn.Conv1d(8, width, 3, padding=1), nn.Conv1d(width, width, 3, stride=2, padding=1)
        self.register_buffer("positional_embedding", sinusoids(6, width))
        self.encoder = nn.ModuleList(SpeechBlock(width, heads, is_decoder=False) for _ in range(2))
        self.ln_post = nn.LayerNorm(width)
        self.token_embedding = nn.Embedding(vocabulary, width)
        self.positions = nn.Parameter(torch.randn(16, width) * 0.01)
        self.decoder = nn.ModuleList(SpeechBlock(width, heads, is_decoder=True) for _ in range(2))
        self.ln = nn.LayerNorm(width)
        self.register_buffer("mask", torch.empty(16, 16).fill_(-math.inf).triu_(1), persistent=False)

    def forward(self, mel: Tensor, tokens: Tensor) -> Tensor:
        audio = functional.gelu(self.conv2(functional.gelu(self.conv1(mel)))).permute(0, 2, 1)
        audio = (audio + self.positional_embedding).to(audio.dtype)
        for block in self.encoder:
            audio = block(audio)
        audio = self.ln_post(audio)
        x = self.token_embedding(tokens) + self.positions[: tokens.shape[-1]]
        for block in self.decoder:
            x = block(x, audio, mask=self.mask)
        x = self.ln(x)
        return (x @ torch.transpose(self.token_embedding.weight.to(x.dtype), 0, 1)).float()


class SharedExperts(nn.Module):
    """Experts as modules, the best three by sigmoids within the best groups, and one that all tokens pass."""

    def __init__(self, width: int, inner: int, experts: int = 6) -> None:
        super().__init__()
        self.gate = nn.Linear(width, experts, bias=False)
        self.register_buffer("bias", torch.linspace(-0.1, 0.1, experts))
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(width, inner, bias=False), nn.SiLU(), nn.Linear(inner, width, bias=False))
            for _ in range(experts)
        )
        self.shared = nn.Sequential(nn.Linear(width, 2 * inner, bias=False), nn.SiLU(), nn.Linear(2 * inner, width))

    def forward(self, x: Tensor) -> Tensor:
        shape = x.shape
        x = x.view(-1, shape[-1])
        scores = self.gate(x).sigmoid()
        grouped = (scores + self.bias).view(len(x), 3, 2)
        groups = torch.topk(grouped.sum(-1), 2, dim=-1)[1]
        mask = torch.zeros_like(grouped[..., 0]).scatter_(1, groups, 1.0)
        masked = (scores + self.bias).masked_fill(
            mask.unsqueeze(-1).expand(-1, 3, 2).reshape(len(x), -1) == 0, -math.inf
        )
        indices = torch.topk(masked, 3, dim=-1)[1]
        weights = scores.gather(1, indices)
        weights = weights / weights.sum(-1, keepdim=True) * 2.5
        y = torch.zeros_like(x)
        for number, expert in enumerate(self.experts):
            y += expert(x) * torch.where(indices == number, weights, 0).sum(-1, keepdim=True)
        return (y + self.shared(x)).view(shape)


class ExpertModel(nn.Module):
    """A table, layers of experts with norms, and a head."""

    def __init__(self, width: int = 32, vocabulary: int = 64) -> None:
        super().__init__()
        self.table = nn.Embedding(vocabulary, width, padding_idx=0)
        self.blocks = nn.ModuleList(SharedExperts(width, 24) for _ in range(2))
        self.norms = nn.ModuleList(nn.RMSNorm(width) for _ in range(3))
        self.head = nn.Linear(width, vocabulary, bias=False)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.table(tokens)
        for norm, block in zip(self.norms, self.blocks, strict=False):
            x = x + block(norm(x))
        return self.head(self.norms[-1](x))


class TimeMix(nn.Module):
    """A recurrence over positions with decays of each channel, after a shift by one position."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.shift = nn.ZeroPad2d((0, 0, 1, -1))
        self.mix = nn.Parameter(torch.rand(4, width))
        self.decay, self.first = nn.Parameter(torch.randn(width) - 1), nn.Parameter(torch.randn(width) * 0.1)
        self.receptance, self.key, self.value, self.gate = (nn.Linear(width, width, bias=False) for _ in range(4))
        self.output, self.ln_x = nn.Linear(width, width, bias=False), nn.GroupNorm(heads, width)

    def forward(self, x: Tensor) -> Tensor:
        batch, rows, width = x.shape
        before = self.shift(x)
        r, k, v, g = (x * mix + before * (1 - mix) for mix in self.mix)
        r = torch.sigmoid(self.receptance(r))
        k, v, g = self.key(k), self.value(v), functional.silu(self.gate(g))
        decay = -torch.exp(self.decay)
        above, below = x.new_zeros(batch, width), x.new_zeros(batch, width)
        largest, outputs = torch.full((batch, width), -1e38), []
        for row in range(rows):
            key, value = k[:, row], v[:, row]
            best = torch.maximum(largest, self.first + key)
            old, new = torch.exp(largest - best), torch.exp(self.first + key - best)
            outputs.append((old * above + new * value) / (old * below + new))
            best = torch.maximum(largest + decay, key)
            old, new = torch.exp(largest + decay - best), torch.exp(key - best)
            above, below, largest = old * above + new * value, old * below + new, best
        mixed = (r * torch.stack(outputs, dim=1)).reshape(batch * rows, width)
        return self.output(self.ln_x(mixed).view(batch, rows, width) * g)


class ChannelMix(nn.Module):
    """A perceptron of squares behind a gate."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.shift, self.mix = nn.ZeroPad2d((0, 0, 1, -1)), nn.Parameter(torch.rand(width))
        self.key, self.value = nn.Linear(width, 3 * width, bias=False), nn.Linear(3 * width, width, bias=False)
        self.receptance = nn.Linear(width, width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        mixed = torch.lerp(self.shift(x), x, self.mix)
        return torch.sigmoid(self.receptance(mixed)) * self.value(torch.square(torch.relu(self.key(mixed))))


class RecurrentModel(nn.Module):
    """Layers of both mixes, with norms."""

    def __init__(self, width: int = 32, vocabulary: int = 64) -> None:
        super().__init__()
        self.emb, self.ln0 = nn.Embedding(vocabulary, width), nn.LayerNorm(width)
        self.att, self.ffn = TimeMix(width, 4), ChannelMix(width)
        self.ln1, self.ln2, self.ln_out = nn.LayerNorm(width), nn.LayerNorm(width), nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.ln0(self.emb(tokens))
        x = x + self.att(self.ln1(x))
        x = x + self.ffn(self.ln2(x))
        return self.head(self.ln_out(x))


def double_conv(before: int, after: int) -> nn.Module:
    """Return two convolutions with norms."""
    return nn.Sequential(
        nn.Conv2d(before, after, 3, padding=1, bias=False),
        nn.BatchNorm2d(after),
        nn.ReLU(inplace=True),
        nn.Conv2d(after, after, 3, padding=1, bias=False),
        nn.BatchNorm2d(after),
        nn.ReLU(inplace=True),
    )


class UNet(nn.Module):
    """Convolutions down and up, joined with what the way down had; sizes that do not halve are padded."""

    def __init__(self, classes: int = 3) -> None:
        super().__init__()
        self.inc, self.down1, self.down2 = double_conv(3, 8), double_conv(8, 16), double_conv(16, 32)
        self.up1, self.conv1 = nn.ConvTranspose2d(32, 16, 2, stride=2), double_conv(32, 16)
        self.up2, self.conv2 = nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True), double_conv(24, 8)
        self.outc = nn.Conv2d(8, classes, 1)

    @staticmethod
    def joined(small: Tensor, skip: Tensor) -> Tensor:
        rows, columns = skip.shape[2] - small.shape[2], skip.shape[3] - small.shape[3]
        small = functional.pad(small, [columns // 2, columns - columns // 2, rows // 2, rows - rows // 2])
        return torch.cat([skip, small], dim=1)

    def forward(self, image: Tensor) -> Tensor:
        first = self.inc(image)
        second = self.down1(functional.max_pool2d(first, 2))
        third = self.down2(functional.avg_pool2d(second, 2))
        x = self.conv1(self.joined(self.up1(third), second))
        return self.outc(self.conv2(self.joined(self.up2(x), first)))


class Recommender(nn.Module):
    """Bags of rows of tables, two perceptrons, and the products of all pairs of features."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.bags = nn.ModuleList(nn.EmbeddingBag(size, width, mode=mode) for size, mode in ((40, "sum"), (25, "mean")))
        self.table = nn.Embedding(30, width)
        self.bottom = nn.Sequential(nn.Linear(7, 32), nn.ReLU(), nn.Linear(32, width), nn.ReLU())
        self.top = nn.Sequential(nn.Linear(6 + width, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, dense: Tensor, bags: Tensor, category: Tensor) -> Tensor:
        x = self.bottom(dense)
        offsets = torch.arange(0, bags[0].numel(), bags.shape[-1])
        sparse = [bag(indices.flatten(), offsets) for bag, indices in zip(self.bags, bags, strict=True)]
        features = torch.stack([x, *sparse, self.table(category)], dim=1)
        products = torch.bmm(features, features.transpose(1, 2))
        rows, columns = torch.tril_indices(4, 4, offset=-1)
        return self.top(torch.cat([x, products[:, rows, columns]], dim=1)).squeeze(-1)


def binary_loss(logits: Tensor, labels: Tensor) -> Tensor:
    """Return the binary cross entropy."""
    return functional.binary_cross_entropy_with_logits(logits, labels)


class ImageTransformer(nn.Module):
    """Patches with two further tokens, three heads, paths that are dropped, and two heads whose mean is the output."""

    def __init__(self, width: int = 24, heads: int = 3, classes: int = 10) -> None:
        super().__init__()
        self.heads = heads
        self.patches = nn.Conv2d(3, width, 4, stride=4)
        self.cls_token, self.dist_token = (nn.Parameter(torch.randn(1, 1, width) * 0.02) for _ in range(2))
        self.pos_embed = nn.Parameter(torch.randn(1, 11, width) * 0.02)
        self.norm1, self.norm2, self.norm = (nn.LayerNorm(width, eps=1e-6) for _ in range(3))
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Dropout(0.1), nn.Linear(4 * width, width))
        self.head, self.head_dist = nn.Linear(width, classes), nn.Linear(width, classes)

    def dropped(self, x: Tensor, chance: float = 0.2) -> Tensor:
        if not self.training:
            return x
        kept = x.new_empty((x.shape[0], 1, 1)).bernoulli_(1 - chance)
        return x * kept.div_(1 - chance)

    def forward(self, image: Tensor) -> Tensor:
        x = self.patches(image).flatten(2).transpose(1, 2)
        tokens = [token.expand(x.shape[0], -1, -1) for token in (self.cls_token, self.dist_token)]
        x = torch.cat([*tokens, x], dim=1) + self.pos_embed
        batch, rows, width = x.shape
        qkv = self.qkv(self.norm1(x)).reshape(batch, rows, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        q, k, v = qkv[0], qkv[1], qkv[2]
        mixed = functional.scaled_dot_product_attention(q, k, v)
        x = x + self.dropped(self.proj(mixed.transpose(1, 2).reshape(batch, rows, width)))
        x = self.norm(x + self.dropped(self.mlp(self.norm2(x))))
        return (self.head(x[:, 0]) + self.head_dist(x[:, 1])) / 2


def pixel_loss(logits: Tensor, labels: Tensor) -> Tensor:
    """Return the cross entropy of pixels, with what a Dice score lacks of one."""
    chances = functional.softmax(logits, dim=1).permute(0, 2, 3, 1)
    wanted = functional.one_hot(labels, chances.shape[-1]).float()
    both, all_ = (chances * wanted).sum((1, 2)), chances.sum((1, 2)) + wanted.sum((1, 2))
    return functional.cross_entropy(logits, labels) + 1 - ((2 * both + 1) / (all_ + 1)).mean()


_ROWS = ("model", None)
USER_MODELS = {
    "speech": TrainedModel(
        SpeechModel,
        lambda: (_floats(4, 8, 12), _numbers(51, 4, 7)),
        lambda: (_numbers(51, 4, 7, seed=7),),
        next_token_loss,
        {
            "*.query.weight": _ROWS,
            "*.key.weight": _ROWS,
            "*.value.weight": _ROWS,
            "*.mlp.0.weight": _ROWS,
            "token_embedding.weight": _ROWS,
        },
        {"mel": ("data",), "tokens": ("data",), "labels": ("data",)},
    ),
    "shared_experts": TrainedModel(
        ExpertModel,
        lambda: (_numbers(64, 4, 6),),
        lambda: (_numbers(64, 4, 6, seed=7),),
        next_token_loss,
        {"*.experts.*.0.weight": _ROWS, "*.shared.0.weight": _ROWS, "table.weight": _ROWS, "head.weight": _ROWS},
        {"tokens": ("data",), "labels": ("data",)},
    ),
    "recurrent": TrainedModel(
        RecurrentModel,
        lambda: (_numbers(64, 4, 5),),
        lambda: (_numbers(64, 4, 5, seed=7),),
        next_token_loss,
        {
            "att.key.weight": _ROWS,
            "att.value.weight": _ROWS,
            "att.receptance.weight": _ROWS,
            "att.gate.weight": _ROWS,
            "ffn.key.weight": _ROWS,
            "emb.weight": _ROWS,
        },
        {"tokens": ("data",), "labels": ("data",)},
    ),
    "unet": TrainedModel(
        UNet,
        lambda: (_floats(4, 3, 10, 14),),
        lambda: (_numbers(3, 4, 10, 14),),
        pixel_loss,
        {"*.0.weight": ("model", None, None, None), "up1.weight": (None, "model", None, None)},
        {"image": ("data",), "labels": ("data",)},
    ),
    "recommender": TrainedModel(
        Recommender,
        lambda: (_floats(8, 7), _numbers(25, 2, 8, 3), _numbers(30, 8)),
        lambda: (_numbers(2, 8).float(),),
        binary_loss,
        {
            "bags.0.weight": _ROWS,
            "bags.1.weight": (None, "model"),
            "table.weight": _ROWS,
            "bottom.0.weight": _ROWS,
            "top.0.weight": _ROWS,
        },
        {"dense": ("data",), "category": ("data",), "labels": ("data",)},
    ),
    "image_transformer": TrainedModel(
        ImageTransformer,
        lambda: (_floats(4, 3, 12, 12),),
        lambda: (_numbers(10, 4),),
        smoothed_loss,
        {"qkv.weight": _ROWS, "mlp.0.weight": _ROWS, "head.weight": _ROWS},
        {"image": ("data",), "labels": ("data",)},
    ),
}
