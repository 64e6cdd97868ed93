"""Small models for the tests, written as users write them."""

from __future__ import annotations

import torch
from torch import nn


class Attention(nn.Module):
    """Attention with projections of its own."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.q_proj, self.k_proj, self.v_proj, self.o_proj = (nn.Linear(width, width, bias=False) for _ in range(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, rows, width = x.shape
        q, k, v = (
            layer(x).view(batch, rows, -1, width // self.heads).transpose(1, 2)
            for layer in (self.q_proj, self.k_proj, self.v_proj)
        )
        mixed = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.o_proj(mixed.transpose(1, 2).reshape(batch, rows, -1))


class Mlp(nn.Module):
    """A gated perceptron with a bias at its end."""

    def __init__(self, width: int, inner: int) -> None:
        super().__init__()
        self.gate_proj, self.up_proj = nn.Linear(width, inner), nn.Linear(width, inner)
        self.down_proj = nn.Linear(inner, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down_proj(nn.functional.silu(self.gate_proj(x)) * self.up_proj(x))


class Layer(nn.Module):
    """A layer of a decoder."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.self_attn, self.mlp = Attention(width, heads), Mlp(width, 2 * width)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.self_attn(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Decoder(nn.Module):
    """A small decoder: embedding, layers, head, and the mean of its logits."""

    def __init__(self, width: int = 16, heads: int = 4, layers: int = 2, vocabulary: int = 32) -> None:
        super().__init__()
        self.embed_tokens = nn.Embedding(vocabulary, width)
        self.layers = nn.ModuleList(Layer(width, heads) for _ in range(layers))
        self.lm_head = nn.Linear(width, vocabulary, bias=False)

    def forward(self, tokens: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        x = self.embed_tokens(tokens)
        for layer in self.layers:
            x = layer(x)
        logits = self.lm_head(x)
        return logits, logits.mean(dim=(1, 2))


def export(module: nn.Module, *args: torch.Tensor) -> torch.export.ExportedProgram:
    """Return a functional exported program."""
    return torch.export.export(module.eval(), args).run_decompositions({})


def exported_decoder(batch: int = 4) -> torch.export.ExportedProgram:
    """Return the decoder, exported."""
    return export(Decoder(), torch.randint(0, 32, (batch, 8)))
