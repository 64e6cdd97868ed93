"""Nine kinds of models to train, small and written as users write them, each with its loss and shardings."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import torch
from attrs import frozen
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from tests.torch.models import Decoder

Tensors = tuple[torch.Tensor, ...]


@frozen
class TrainedModel:
    """A model, a batch, its loss, and shardings by glob of a mesh of one axis `model`, and of `data` and `model`."""

    make: Callable[[], nn.Module]
    inputs: Callable[[], Tensors]
    targets: Callable[[], Tensors]
    loss: Callable[..., torch.Tensor]
    tensor: Mapping[Any, Any]
    batch: Mapping[Any, Any]

    def shardings(self, mesh: Mapping[str, int]) -> dict[Any, Any]:
        """Return the shardings for a mesh."""
        return {**self.tensor, **(self.batch if "data" in mesh else {})}


def _numbers(limit: int, *shape: int, seed: int = 6) -> torch.Tensor:
    return torch.randint(0, limit, shape, generator=torch.Generator().manual_seed(seed))


def _floats(*shape: int, seed: int = 5) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def next_token_loss(output: Any, labels: torch.Tensor) -> torch.Tensor:
    """Return the cross entropy of logits, with what the model adds to it."""
    logits, *more = output if isinstance(output, tuple) else (output,)
    return functional.cross_entropy(logits.flatten(0, -2), labels.flatten()) + sum(more)


def token_loss_of_first(output: Any, labels: torch.Tensor) -> torch.Tensor:
    """Return the cross entropy of the first output."""
    return next_token_loss(output[0], labels)


class RotaryEmbedding(nn.Module):
    """Rotations by position, as complex numbers."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.register_buffer("frequencies", 1.0 / 10000 ** (torch.arange(0, width, 2) / width), persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        angles = torch.outer(torch.arange(x.shape[-2], device=x.device), self.frequencies)
        turns = torch.polar(torch.ones_like(angles), angles)
        pairs = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
        return torch.view_as_real(pairs * turns).flatten(-2).type_as(x)


def rotate_half(x: torch.Tensor) -> torch.Tensor:
    """Return halves of the last dimension swapped, the first one negated."""
    first, second = x.chunk(2, -1)
    return torch.cat((-second, first), -1)


class GroupedAttention(nn.Module):
    """Attention with fewer heads for keys and values, which are repeated; rotations by sines and cosines."""

    def __init__(self, width: int, heads: int, kv_heads: int) -> None:
        super().__init__()
        self.heads, self.kv_heads, self.size = heads, kv_heads, width // heads
        self.q_proj = nn.Linear(width, heads * self.size, bias=False)
        self.k_proj = nn.Linear(width, kv_heads * self.size, bias=False)
        self.v_proj = nn.Linear(width, kv_heads * self.size, bias=False)
        self.o_proj = nn.Linear(heads * self.size, width, bias=False)
        self.register_buffer("inv_freq", 1.0 / 500.0 ** (torch.arange(0, self.size, 2) / self.size))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, rows, _ = x.shape
        angles = torch.arange(rows)[:, None] * self.inv_freq[None]
        cos, sin = (torch.cat((f(angles), f(angles)), -1) for f in (torch.cos, torch.sin))
        q = self.q_proj(x).view(batch, rows, self.heads, self.size).transpose(1, 2)
        k = self.k_proj(x).view(batch, rows, self.kv_heads, self.size).transpose(1, 2)
        v = self.v_proj(x).view(batch, rows, self.kv_heads, self.size).transpose(1, 2)
        q, k = (item * cos + rotate_half(item) * sin for item in (q, k))
        k, v = (item.repeat_interleave(self.heads // self.kv_heads, 1) for item in (k, v))
        scores = q @ k.transpose(-1, -2) / math.sqrt(self.size)
        mask = torch.full((rows, rows), float("-inf")).triu(1)
        weights = functional.softmax(scores + mask, dim=-1, dtype=torch.float32).to(q.dtype)
        return self.o_proj((weights @ v).transpose(1, 2).contiguous().view(batch, rows, -1))


class SwiGlu(nn.Module):
    """A gated perceptron."""

    def __init__(self, width: int, inner: int) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(width, inner, bias=False)
        self.up_proj = nn.Linear(width, inner, bias=False)
        self.down_proj = nn.Linear(inner, width, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down_proj(functional.silu(self.gate_proj(x)) * self.up_proj(x))


class Block(nn.Module):
    """A layer: something that mixes positions, and something that does not, both behind norms."""

    def __init__(self, width: int, mixer: nn.Module, perceptron: nn.Module) -> None:
        super().__init__()
        self.mixer, self.mlp = mixer, perceptron
        self.input_norm, self.post_norm = nn.RMSNorm(width), nn.RMSNorm(width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.mixer(self.input_norm(x))
        return x + self.mlp(self.post_norm(x))


class LanguageModel(nn.Module):
    """An embedding, layers, each in a checkpoint if it is asked for, a norm and a head."""

    def __init__(
        self, layers: list[nn.Module], width: int = 32, vocabulary: int = 64, *, is_checkpointed: bool = False
    ) -> None:
        super().__init__()
        self.is_checkpointed = is_checkpointed
        self.embed_tokens = nn.Embedding(vocabulary, width)
        self.layers = nn.ModuleList(layers)
        self.norm, self.lm_head = nn.RMSNorm(width), nn.Linear(width, vocabulary, bias=False)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.embed_tokens(tokens)
        for layer in self.layers:
            x = checkpoint(layer, x, use_reentrant=False) if self.is_checkpointed else layer(x)
        return self.lm_head(self.norm(x))


class LatentAttention(nn.Module):
    """Multi-head latent attention: keys and values from a small latent vector, one rotated key for all heads."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads, self.nope, self.rope, self.value, self.rank = heads, 8, 4, 8, 16
        self.q_a_proj, self.q_a_norm = nn.Linear(width, 24, bias=False), nn.RMSNorm(24)
        self.q_b_proj = nn.Linear(24, heads * (self.nope + self.rope), bias=False)
        self.kv_a_proj = nn.Linear(width, self.rank + self.rope, bias=False)
        self.kv_a_norm = nn.RMSNorm(self.rank)
        self.kv_b_proj = nn.Linear(self.rank, heads * (self.nope + self.value), bias=False)
        self.o_proj = nn.Linear(heads * self.value, width, bias=False)
        self.rotary = RotaryEmbedding(self.rope)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, rows, _ = x.shape
        q = self.q_b_proj(self.q_a_norm(self.q_a_proj(x))).view(batch, rows, self.heads, -1).transpose(1, 2)
        q_nope, q_rope = torch.split(q, [self.nope, self.rope], -1)
        latent, k_rope = torch.split(self.kv_a_proj(x), [self.rank, self.rope], -1)
        kv = self.kv_b_proj(self.kv_a_norm(latent)).view(batch, rows, self.heads, -1).transpose(1, 2)
        k_nope, v = torch.split(kv, [self.nope, self.value], -1)
        q_rope, k_rope = self.rotary(q_rope), self.rotary(k_rope.unsqueeze(1))
        q = torch.cat([q_nope, q_rope], -1)
        k = torch.cat([k_nope, k_rope.expand(-1, self.heads, -1, -1)], -1)
        mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True, scale=q.shape[-1] ** -0.5)
        return self.o_proj(mixed.transpose(1, 2).reshape(batch, rows, -1))


class Experts(nn.Module):
    """The best two of several experts for each token, with a loss that balances them."""

    def __init__(self, width: int, inner: int, experts: int = 4, chosen: int = 2) -> None:
        super().__init__()
        self.experts, self.chosen = experts, chosen
        self.router = nn.Linear(width, experts, bias=False)
        self.w1 = nn.Parameter(torch.randn(experts, width, inner) / math.sqrt(width))
        self.w2 = nn.Parameter(torch.randn(experts, inner, width) / math.sqrt(inner))
        self.balance: Any = None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        tokens = x.reshape(-1, x.shape[-1])
        chances = self.router(tokens).softmax(-1)
        weights, indices = chances.topk(self.chosen, -1)
        weights = weights / weights.sum(-1, keepdim=True)
        gates = torch.zeros_like(chances).scatter(1, indices, weights)
        self.balance = self.experts * ((gates > 0).float().mean(0) * chances.mean(0)).sum()
        inner = functional.silu(torch.einsum("td,edf->etf", tokens, self.w1))
        mixed = torch.einsum("etf,efd,te->td", inner, self.w2, gates)
        return mixed.view_as(x)


class Mixture(LanguageModel):
    """A model with experts, which returns the losses that balance these, too."""

    def forward(self, tokens: torch.Tensor) -> Any:
        logits = super().forward(tokens)
        return logits, 0.01 * sum(layer.mlp.balance for layer in self.layers)


class SelectiveScan(nn.Module):
    """A state space whose steps depend on the input, one position after the other, behind a short convolution."""

    def __init__(self, width: int, inner: int, states: int = 4) -> None:
        super().__init__()
        self.inner, self.states = inner, states
        self.x_proj_in, self.z_proj = nn.Linear(width, inner, bias=False), nn.Linear(width, inner, bias=False)
        self.conv1d = nn.Conv1d(inner, inner, 4, groups=inner, padding=3)
        self.bc_proj, self.dt_proj = nn.Linear(inner, 2 * states, bias=False), nn.Linear(inner, inner)
        self.A_log = nn.Parameter(torch.log(torch.arange(1, states + 1).float().repeat(inner, 1)))
        self.D = nn.Parameter(torch.ones(inner))
        self.out_proj = nn.Linear(inner, width, bias=False)

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        batch, rows, _ = hidden.shape
        x, z = self.x_proj_in(hidden), self.z_proj(hidden)
        x = functional.silu(self.conv1d(x.transpose(1, 2))[..., :rows]).transpose(1, 2)
        b, c = self.bc_proj(x).chunk(2, -1)
        dt, a = functional.softplus(self.dt_proj(x)), -torch.exp(self.A_log)
        decay = torch.exp(dt.unsqueeze(-1) * a)
        update = dt.unsqueeze(-1) * b.unsqueeze(2) * x.unsqueeze(-1)
        state, outputs = x.new_zeros(batch, self.inner, self.states), []
        for row in range(rows):
            state = decay[:, row] * state + update[:, row]
            outputs.append(torch.einsum("bds,bs->bd", state, c[:, row]))
        y = torch.stack(outputs, 1) + x * self.D
        return self.out_proj(y * functional.silu(z))


class EncoderDecoder(nn.Module):
    """PyTorch's own layers of an encoder and a decoder, with padding and a table that is that of the head, too."""

    def __init__(self, width: int = 32, vocabulary: int = 64) -> None:
        super().__init__()
        self.table, self.places = nn.Embedding(vocabulary, width), nn.Parameter(torch.randn(16, width) * 0.02)
        layers = {"nhead": 4, "dim_feedforward": 64, "dropout": 0.1, "batch_first": True, "norm_first": True}
        self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(width, **layers), 2, enable_nested_tensor=False)
        self.decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(width, **layers), 2)
        self.head = nn.Linear(width, vocabulary, bias=False)
        self.head.weight = self.table.weight

    def forward(self, source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        padded = source == 0
        memory = self.encoder(self.table(source) + self.places[: source.shape[1]], src_key_padding_mask=padded)
        mask = nn.Transformer.generate_square_subsequent_mask(target.shape[1])
        x = self.table(target) + self.places[: target.shape[1]]
        x = self.decoder(x, memory, tgt_mask=mask, memory_key_padding_mask=padded, tgt_is_causal=True)
        return self.head(x)


class Residual(nn.Module):
    """Two convolutions with running statistics, around which the input is added."""

    def __init__(self, before: int, after: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(before, after, 3, stride, 1, bias=False)
        self.conv2 = nn.Conv2d(after, after, 3, 1, 1, bias=False)
        self.bn1, self.bn2 = nn.BatchNorm2d(after), nn.BatchNorm2d(after)
        self.shortcut = nn.Conv2d(before, after, 1, stride, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = functional.relu(self.bn1(self.conv1(x)), inplace=True)
        y = self.bn2(self.conv2(y))
        y += self.shortcut(x)
        return functional.relu(y)


class VisionModel(nn.Module):
    """A residual network whose places are the tokens of a transformer with a fused projection."""

    def __init__(self, width: int = 32, classes: int = 10) -> None:
        super().__init__()
        self.stem, self.pool = nn.Conv2d(3, 16, 3, padding=1), nn.MaxPool2d(2)
        self.stages = nn.Sequential(Residual(16, 16, 1), Residual(16, width, 2))
        self.cls_token = nn.Parameter(torch.zeros(1, 1, width))
        self.pos_embed = nn.Parameter(torch.randn(1, 17, width) * 0.02)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.fc1, self.fc2 = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.scale = nn.Parameter(torch.full((width,), 0.1))
        self.head = nn.Linear(width, classes)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        x = self.stages(self.pool(self.stem(image))).flatten(2).transpose(1, 2)
        x = torch.cat((self.cls_token.expand(x.shape[0], -1, -1), x), 1) + self.pos_embed
        batch, rows, width = x.shape
        qkv = self.qkv(self.norm1(x)).reshape(batch, rows, 3, 4, width // 4).permute(2, 0, 3, 1, 4)
        q, k, v = qkv.unbind(0)
        mixed = (q @ k.transpose(-2, -1) * (width // 4) ** -0.5).softmax(-1) @ v
        x = x + self.scale * self.proj(mixed.transpose(1, 2).reshape(batch, rows, width))
        x = x + self.scale * self.fc2(functional.gelu(self.fc1(self.norm2(x))))
        return self.head(x[:, 0])


def smoothed_loss(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Return the cross entropy of labels that are smoothed."""
    return functional.cross_entropy(logits, labels, label_smoothing=0.1)


class TimedBlock(nn.Module):
    """Group norms and convolutions, between which the time is added."""

    def __init__(self, before: int, after: int, time: int) -> None:
        super().__init__()
        self.norm1, self.conv1 = nn.GroupNorm(4, before), nn.Conv2d(before, after, 3, padding=1)
        self.time = nn.Linear(time, 2 * after)
        self.norm2, self.conv2 = nn.GroupNorm(4, after), nn.Conv2d(after, after, 3, padding=1)
        self.skip = nn.Conv2d(before, after, 1) if before != after else nn.Identity()

    def forward(self, x: torch.Tensor, time: torch.Tensor) -> torch.Tensor:
        y = self.conv1(functional.silu(self.norm1(x)))
        scale, shift = self.time(functional.silu(time))[:, :, None, None].chunk(2, dim=1)
        y = self.conv2(functional.silu(self.norm2(y) * (1 + scale) + shift))
        return y + self.skip(x)


class Diffusion(nn.Module):
    """A denoising network with one level below, which draws the noise that it is to predict and returns the loss."""

    def __init__(self, width: int = 16, steps: int = 10) -> None:
        super().__init__()
        self.width = width
        self.register_buffer("alphas", torch.cumprod(1 - torch.linspace(1e-4, 0.02, steps), 0))
        self.time = nn.Sequential(nn.Linear(width, 4 * width), nn.SiLU(), nn.Linear(4 * width, 4 * width))
        self.conv_in = nn.Conv2d(3, width, 3, padding=1)
        self.down = TimedBlock(width, width, 4 * width)
        self.downsample = nn.Conv2d(width, 2 * width, 3, stride=2, padding=1)
        self.middle = TimedBlock(2 * width, 2 * width, 4 * width)
        self.norm, self.attention = nn.GroupNorm(4, 2 * width), nn.MultiheadAttention(2 * width, 4, batch_first=True)
        self.upsample = nn.Conv2d(2 * width, width, 3, padding=1)
        self.up = TimedBlock(2 * width, width, 4 * width)
        self.norm_out, self.conv_out = nn.GroupNorm(4, width), nn.Conv2d(width, 3, 3, padding=1)

    def forward(self, image: torch.Tensor, step: torch.Tensor) -> torch.Tensor:
        noise = torch.randn_like(image)
        alpha = self.alphas[step].view(-1, 1, 1, 1)
        predicted = self.denoise(alpha.sqrt() * image + (1 - alpha).sqrt() * noise, step)
        return functional.mse_loss(predicted, noise)

    def denoise(self, x: torch.Tensor, step: torch.Tensor) -> torch.Tensor:
        """Return the noise in an image."""
        half = self.width // 2
        rates = torch.exp(-math.log(10000) * torch.arange(half, device=x.device) / half)
        angles = step[:, None].float() * rates[None]
        time = self.time(torch.cat([angles.sin(), angles.cos()], dim=-1))
        x = skip = self.down(self.conv_in(x), time)
        x = self.middle(self.downsample(x), time)
        batch, channels, height, width = x.shape
        flat = self.norm(x).view(batch, channels, -1).transpose(1, 2)
        mixed, _ = self.attention(flat, flat, flat, need_weights=False)
        x = x + mixed.transpose(1, 2).reshape(batch, channels, height, width)
        x = self.upsample(functional.interpolate(x, scale_factor=2, mode="nearest"))
        x = self.up(torch.cat([x, skip], 1), time)
        return self.conv_out(functional.silu(self.norm_out(x)))


def same(loss: torch.Tensor) -> torch.Tensor:
    """Return the loss that a model computes."""
    return loss


def _grouped(count: int = 2) -> list[nn.Module]:
    return [Block(32, GroupedAttention(32, 8, 4), SwiGlu(32, 64)) for _ in range(count)]


def _latent() -> list[nn.Module]:
    return [Block(32, LatentAttention(32, 4), SwiGlu(32, 64)) for _ in range(2)]


def _experts() -> list[nn.Module]:
    return [Block(32, GroupedAttention(32, 8, 4), Experts(32, 64)) for _ in range(2)]


def _scans() -> list[nn.Module]:
    return [Block(32, SelectiveScan(32, 64), SwiGlu(32, 64)) for _ in range(2)]


def _hybrid() -> list[nn.Module]:
    return [
        Block(32, SelectiveScan(32, 64), SwiGlu(32, 64)),
        Block(32, GroupedAttention(32, 8, 4), Experts(32, 64)),
    ]


_ROWS = ("model", None)
_TOKENS = {"tokens": ("data",), "labels": ("data",)}
_GATED = {"*.gate_proj.weight": _ROWS, "embed_tokens.weight": _ROWS, "lm_head.weight": _ROWS}
_SCAN = {"*.x_proj_in.weight": _ROWS, "*.z_proj.weight": _ROWS, "embed_tokens.weight": _ROWS}
_GROUPED = {"*.[qkv]_proj.weight": _ROWS}


def _language(make: Callable[[], nn.Module], tensor: Mapping[Any, Any]) -> TrainedModel:
    tokens, labels = (lambda: (_numbers(64, 4, 8),)), (lambda: (_numbers(64, 4, 8, seed=7),))
    return TrainedModel(make, tokens, labels, next_token_loss, tensor, _TOKENS)


TRAINED_MODELS = {
    "dense": TrainedModel(
        lambda: Decoder(32, 4, 2, 64),
        lambda: (_numbers(64, 4, 8),),
        lambda: (_numbers(64, 4, 8, seed=7),),
        token_loss_of_first,
        {**_GROUPED, **_GATED},
        _TOKENS,
    ),
    "grouped": _language(
        lambda: LanguageModel(_grouped(), is_checkpointed=True),
        {**_GROUPED, **_GATED},
    ),
    "latent": _language(lambda: LanguageModel(_latent()), {"*.*_b_proj.weight": _ROWS, **_GATED}),
    "experts": _language(lambda: Mixture(_experts()), {**_GROUPED, "*.w[12]": ("model", None, None)}),
    "scan": _language(lambda: LanguageModel(_scans()), {**_SCAN, "*.gate_proj.weight": _ROWS}),
    "hybrid": _language(
        lambda: LanguageModel(_hybrid()),
        {**_SCAN, **_GROUPED, "*.gate_proj.weight": _ROWS, "*.w1": (None, None, "model")},
    ),
    "encoder_decoder": TrainedModel(
        EncoderDecoder,
        lambda: (_numbers(64, 4, 7), _numbers(64, 4, 6, seed=8)),
        lambda: (_numbers(64, 4, 6, seed=7),),
        next_token_loss,
        {"table.weight": _ROWS, "*.linear1.weight": _ROWS, "*.in_proj_weight": _ROWS},
        {"source": ("data",), "target": ("data",), "labels": ("data",)},
    ),
    "vision": TrainedModel(
        VisionModel,
        lambda: (_floats(8, 3, 16, 16),),
        lambda: (_numbers(10, 8),),
        smoothed_loss,
        {"*.conv1.weight": ("model", None, None, None), "qkv.weight": _ROWS, "fc1.weight": _ROWS},
        {"image": ("data",), "labels": ("data",)},
    ),
    "diffusion": TrainedModel(
        Diffusion,
        lambda: (_floats(4, 3, 8, 8), _numbers(10, 4)),
        lambda: (),
        same,
        {"*.conv1.weight": ("model", None, None, None), "time.0.weight": _ROWS},
        {"image": ("data",), "step": ("data",)},
    ),
}
