"""Models whose plans are easily wrong, and which weights to shard in each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from attrs import frozen
from torch import nn
from torch.nn import functional as F

COLUMNS, ROWS = ("m", None), (None, "m")
WIDTH, INNER = 16, 32


@frozen
class Planned:
    """A model with the shardings of its weights.

    Args:
        make: Makes the model.
        shardings: The shardings by name or glob.
        inputs: Makes its inputs.
        decompositions: ``none``, or ``core`` for the core operators.
    """

    make: Callable[[], nn.Module]
    shardings: Mapping[str, Any]
    inputs: Callable[[], tuple[torch.Tensor, ...]] = lambda: (torch.randn(2, 8, WIDTH),)
    decompositions: str = "none"

    def exported(self, model: nn.Module) -> Any:
        """Return the exported model."""
        program = torch.export.export(model, self.inputs())
        return program.run_decompositions() if self.decompositions == "core" else program.run_decompositions({})


class Pair(nn.Module):
    """Two linear layers with a function between them."""

    def __init__(self, between: Callable[..., torch.Tensor], inner: int = INNER, second: int | None = None) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(WIDTH, inner), nn.Linear(second or inner, WIDTH)
        self.between = between

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down(self.between(self.up(x)))


class WithNorm(Pair):
    """A pair with a module between."""

    def __init__(self, norm: nn.Module, inner: int = INNER) -> None:
        super().__init__(norm, inner)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.down(self.between(self.up(x).transpose(1, 2)).transpose(1, 2))


class DividedBySize(Pair):
    """A pair that divides by the number of columns between, read from the shape or from a variable."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.up(x)
        count = y.size(-1)
        return self.down(torch.tanh(y) * count**-0.5 + y / y.shape[-1])


def _divided_by_count(y: torch.Tensor) -> torch.Tensor:
    return y / y.numel()


class DividedInFunction(Pair):
    """A pair with a function between that divides by the number of elements, whose lines an export does not name."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down(_divided_by_count(self.up(x)))


class DividedByCount(Pair):
    """A pair that divides by the number of elements between."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.up(x)
        return self.down(y / y.numel())


class DividedLater(Pair):
    """A pair whose result is divided by the number of columns between."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.up(x)
        return self.down(torch.tanh(y)) / y.shape[-1]


class Expanded(Pair):
    """A pair with an expansion between to sizes that are numbers, or -1."""

    def __init__(self, columns: int) -> None:
        super().__init__(F.gelu)
        self.columns = columns

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down(self.up(x)[:, :, None, :].expand(2, 8, 3, self.columns).sum(2))


class BiasRead(Pair):
    """A pair whose first bias is read once more."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down(F.gelu(self.up(x)) + self.up.bias)


class Adapted(nn.Linear):
    """A linear layer with two others in it."""

    def __init__(self) -> None:
        super().__init__(WIDTH, INNER)
        self.first, self.second = nn.Linear(WIDTH, 4, bias=False), nn.Linear(4, INNER, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x) + self.second(self.first(x))


class Added(nn.Module):
    """A parameter of whole size beside the output of a layer."""

    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(WIDTH, INNER), nn.Linear(INNER, WIDTH)
        self.shift = nn.Parameter(torch.randn(INNER))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down(self.up(x) + self.shift)


class Attention(nn.Module):
    """Attention whose projections are split into heads in one of several ways."""

    def __init__(self, split: str, merge: str, kv_heads: int = 4, *, crossed: bool = False) -> None:
        super().__init__()
        self.heads, self.size, self.kv_heads = 4, 4, kv_heads
        self.split, self.merge, self.crossed = split, merge, crossed
        self.q, self.o = nn.Linear(WIDTH, 16), nn.Linear(16, WIDTH)
        self.k, self.v = (nn.Linear(WIDTH, kv_heads * self.size) for _ in range(2))

    def _split(self, y: torch.Tensor, heads: int) -> torch.Tensor:
        b, t, _ = y.shape
        if self.split == "inferred":
            return y.view(b, t, -1, self.size).transpose(1, 2)
        if self.split == "heads":
            return y.view(b, t, heads, -1).transpose(1, 2)
        if self.split == "numbers":
            return y.view(b, t, heads, self.size).transpose(1, 2)
        return y.unflatten(-1, (-1, self.size)).transpose(1, 2)

    def forward(self, x: torch.Tensor, other: torch.Tensor | None = None) -> torch.Tensor:
        other = x if other is None else other
        q = self._split(self.q(x), self.heads)
        k, v = self._split(self.k(other), self.kv_heads), self._split(self.v(other), self.kv_heads)
        if self.kv_heads != self.heads:
            b, heads, t, size = k.shape
            times = self.heads // self.kv_heads
            k = k[:, :, None].expand(b, heads, times, t, size).reshape(b, heads * times, t, size)
            v = v[:, :, None].expand(-1, -1, times, -1, -1).reshape(b, v.shape[1] * times, t, size)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=not self.crossed).transpose(1, 2)
        b, t = y.shape[:2]
        if self.merge == "inferred":
            return self.o(y.reshape(b, t, -1))
        if self.merge == "numbers":
            return self.o(y.reshape(b, t, WIDTH))
        return self.o(y.flatten(2))


class Fused(nn.Module):
    """Attention with one projection for queries, keys and values."""

    def __init__(self, parts: Callable[[torch.Tensor], Any]) -> None:
        super().__init__()
        self.qkv, self.o = nn.Linear(WIDTH, 48, bias=False), nn.Linear(WIDTH, WIDTH, bias=False)
        self.parts = parts

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = (t.unflatten(-1, (-1, 4)).transpose(1, 2) for t in self.parts(self.qkv(x)))
        return self.o(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))


class Scaled(nn.Embedding):
    """An embedding that scales its rows."""

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return super().forward(tokens) * 3.0


class Twice(nn.Linear):
    """A linear layer that does more than one."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x).cumsum(-1)


class Language(nn.Module):
    """An embedding, a layer and a head, which may share their weights."""

    def __init__(self, tied: int, words: int = 32, embedding: type[nn.Embedding] = nn.Embedding) -> None:
        super().__init__()
        self.emb = embedding(words, WIDTH)
        self.norm, self.mlp = nn.LayerNorm(WIDTH), Pair(F.gelu)
        self.head, self.inner = nn.Linear(WIDTH, words, bias=False), nn.ModuleDict({"head": nn.Linear(WIDTH, words)})
        if tied > 1:
            self.head.weight = self.emb.weight
        if tied > 2:
            self.inner["head"].weight = self.emb.weight

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.emb(tokens)
        x = x + self.mlp(self.norm(x))
        return self.head(x) + self.inner["head"](x.relu())


class TiedByFunction(nn.Module):
    """A head that reads the table of the embedding in a function."""

    def __init__(self) -> None:
        super().__init__()
        self.emb, self.up = nn.Embedding(32, WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return F.linear(self.up(self.emb(tokens)), self.emb.weight)


class Shared(nn.Module):
    """A layer that is called twice, once under another name."""

    def __init__(self, *, narrow: bool) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)
        self.other = self.up
        self.narrow = narrow

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.up(x)
        return self.down(self.other(y).relu()) if self.narrow else self.down(y) + self.down(self.other(x.relu()))


class Autocast(nn.Module):
    """A pair under autocast."""

    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(WIDTH, INNER), nn.Linear(INNER, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with torch.autocast("cpu", torch.bfloat16):
            return self.down(F.gelu(self.up(x))).float()


class Heads(nn.Module):
    """Attention of PyTorch itself, which reads the weights of its last layer in a function."""

    def __init__(self) -> None:
        super().__init__()
        self.mha = nn.MultiheadAttention(WIDTH, 4, batch_first=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.mha(x, x, x)[0]


def _tokens() -> tuple[torch.Tensor, ...]:
    return (torch.arange(16).view(2, 8),)


def _two() -> tuple[torch.Tensor, ...]:
    return torch.randn(2, 8, WIDTH), torch.randn(2, 6, WIDTH)


def _pair(between: Callable[..., torch.Tensor], inner: int = INNER, second: int | None = None) -> Planned:
    return Planned(lambda: Pair(between, inner, second), {"up.weight": COLUMNS})


def _gated(parts: Callable[[torch.Tensor], Any]) -> Planned:
    def between(y: torch.Tensor) -> torch.Tensor:
        gate, up = parts(y)
        return F.silu(gate) * up

    return _pair(between, 2 * INNER, INNER)


_QKV = {"[qkv].weight": COLUMNS}
MODELS: Mapping[str, Planned] = {
    "gelu": _pair(F.gelu),
    "turned rows": _pair(lambda y: torch.cat((y[:, 1:], y[:, 0].unsqueeze(1)), 1)),
    "chunk": _gated(lambda y: y.chunk(2, -1)),
    "split": _gated(lambda y: y.split(INNER, -1)),
    "slices": _gated(lambda y: (y[..., :INNER], y[..., INNER:])),
    "strided": _gated(lambda y: (y[..., ::2], y[..., 1::2])),
    "unbound": _gated(lambda y: y.unflatten(-1, (2, -1)).unbind(-2)),
    "glu": _pair(F.glu, 2 * INNER, INNER),
    "softmax": _pair(lambda y: y.softmax(-1)),
    "log_softmax": _pair(lambda y: y.log_softmax(-1)),
    "normalized": _pair(lambda y: F.layer_norm(y, (INNER,))),
    "rms": _pair(lambda y: y * (y.pow(2).mean(-1, keepdim=True) + 1e-5).rsqrt()),
    "cumsum": _pair(lambda y: y.cumsum(-1)),
    "sort": _pair(lambda y: y.sort(-1).values),
    "flip": _pair(lambda y: y.flip(-1)),
    "roll": _pair(lambda y: y.roll(1, -1)),
    "pad": _pair(lambda y: F.pad(y, (0, 4)), INNER, INNER + 4),
    "repeat": _pair(lambda y: y.repeat(1, 1, 2), INNER, 2 * INNER),
    "doubled": _pair(lambda y: torch.cat([y, y], -1), INNER, 2 * INNER),
    "outer": _pair(lambda y: y @ torch.ones(INNER, INNER).triu()),
    "max": _pair(lambda y: y - y.amax(-1, keepdim=True)),
    "whole": _pair(lambda y: y + torch.arange(INNER)),
    "mask": _pair(lambda y: y.masked_fill(torch.arange(INNER) > 3, 0.0)),
    "pooled": _pair(lambda y: F.avg_pool1d(y, 2), INNER, INNER // 2),
    "dropped": _pair(lambda y: F.dropout(y, 0.5, training=False)),
    "squeezed": _pair(lambda y: y[..., :2].squeeze(), INNER, 2),
    "two columns": _pair(lambda y: y.transpose(1, 2).squeeze(1).reshape(2, 2, -1).transpose(1, 2), 2),
    "odd": _pair(F.gelu, 33),
    "groups": Planned(lambda: WithNorm(nn.GroupNorm(4, INNER, affine=False)), {"up.weight": COLUMNS}),
    "batch": Planned(lambda: WithNorm(nn.BatchNorm1d(INNER).eval()), {"up.weight": COLUMNS}),
    "instance": Planned(lambda: WithNorm(nn.InstanceNorm1d(INNER)), {"up.weight": COLUMNS}),
    "conv": Planned(lambda: WithNorm(nn.Conv1d(INNER, INNER, 3, padding=1)), {"up.weight": COLUMNS}),
    "depthwise": Planned(
        lambda: WithNorm(nn.Conv1d(INNER, INNER, 3, padding=1, groups=INNER, bias=False)), {"up.weight": COLUMNS}
    ),
    "added": Planned(Added, {"up.weight": COLUMNS}),
    "divided by size": Planned(lambda: DividedBySize(F.gelu), {"up.weight": COLUMNS}),
    "divided in a function": Planned(lambda: DividedInFunction(F.gelu), {"up.weight": COLUMNS}),
    "divided by count": Planned(lambda: DividedByCount(F.gelu), {"up.weight": COLUMNS}),
    "divided later": Planned(lambda: DividedLater(F.gelu), {"up.weight": COLUMNS}),
    "expanded": Planned(lambda: Expanded(INNER), {"up.weight": COLUMNS}),
    "expanded by -1": Planned(lambda: Expanded(-1), {"up.weight": COLUMNS}),
    "bias read": Planned(lambda: BiasRead(F.gelu), {"up.weight": COLUMNS}),
    "adapted": Planned(lambda: nn.Sequential(Adapted(), nn.Linear(INNER, WIDTH)), {"0.weight": COLUMNS}),
    "rows": Planned(lambda: Pair(F.gelu), {"down.weight": ROWS}),
    "up alone": Planned(lambda: Pair(F.gelu), {"up.weight": COLUMNS, "down.weight": "[{}, {}]"}),
    "up by rows": Planned(lambda: Pair(F.gelu), {"up.weight": ROWS}),
    "input": Planned(lambda: Pair(F.gelu), {"x": (None, "m", None), "up.weight": COLUMNS}),
    "core operators": Planned(lambda: Pair(F.gelu), {"up.weight": COLUMNS}, decompositions="core"),
    "autocast": Planned(Autocast, {"up.weight": COLUMNS}),
    "root": Planned(lambda: nn.Linear(WIDTH, INNER), {"weight": COLUMNS}),
    "inferred heads": Planned(lambda: Attention("inferred", "inferred"), _QKV),
    "fixed heads": Planned(lambda: Attention("heads", "inferred"), _QKV),
    "numbers": Planned(lambda: Attention("numbers", "flatten"), _QKV),
    "unflattened": Planned(lambda: Attention("unflatten", "flatten"), _QKV),
    "merged numbers": Planned(lambda: Attention("inferred", "numbers"), _QKV),
    "fewer heads": Planned(lambda: Attention("inferred", "flatten", 2), _QKV),
    "one head": Planned(lambda: Attention("inferred", "flatten", 1), {"q.weight": COLUMNS}),
    "crossed": Planned(lambda: Attention("inferred", "inferred", crossed=True), _QKV, _two),
    "fused chunk": Planned(lambda: Fused(lambda y: y.chunk(3, -1)), {"qkv.weight": COLUMNS}),
    "fused split": Planned(lambda: Fused(lambda y: y.split(WIDTH, -1)), {"qkv.weight": COLUMNS}),
    "interleaved": Planned(lambda: Fused(lambda y: y.view(2, 8, -1, 3).unbind(-1)), {"qkv.weight": COLUMNS}),
    "attention": Planned(Heads, {"mha.out_proj.weight": ROWS}),
    "tied": Planned(lambda: Language(2), {"emb.weight": COLUMNS}, _tokens),
    "tied thrice": Planned(lambda: Language(3), {"inner.head.weight": COLUMNS, "mlp.up.weight": COLUMNS}, _tokens),
    "tied columns": Planned(lambda: Language(3), {"head.weight": ROWS}, _tokens),
    "apart": Planned(lambda: Language(1), {"emb.weight": COLUMNS, "head.weight": COLUMNS}, _tokens),
    "odd words": Planned(lambda: Language(2, 33), {"emb.weight": COLUMNS}, _tokens),
    "scaled": Planned(lambda: Language(2, embedding=Scaled), {"emb.weight": COLUMNS}, _tokens),
    "embedded columns": Planned(lambda: Language(1), {"emb.weight": ROWS}, _tokens),
    "tied by a function": Planned(TiedByFunction, {"emb.weight": COLUMNS, "up.weight": ROWS}, _tokens),
    "more than a layer": Planned(
        lambda: nn.Sequential(Twice(WIDTH, INNER), nn.Linear(INNER, 4)), {"0.weight": COLUMNS}
    ),
    "called twice": Planned(lambda: Shared(narrow=False), {"up.weight": COLUMNS}),
    "called in a row": Planned(lambda: Shared(narrow=True), {"up.weight": COLUMNS}),
}
