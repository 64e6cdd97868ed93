"""A program that is exported with a dynamic batch and length, and what each of four processes sees of it."""

from __future__ import annotations

import warnings
from typing import Any

import torch
from torch import nn
from torch.export import Dim

import shardy_py as sdy

CALLS = ((4, 8), (16, 24), (12, 20), (1, 2))
"""The sizes of batches, those of the example first."""
SHARDINGS = {"tokens": ("data",), "qkv.weight": ("model", None), "table.weight": ("model", None)}


class Masked(nn.Module):
    """Attention under a mask of padding, with a tensor that has a symbolic size, a size and a buffer as outputs."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.qkv, self.out = nn.Embedding(32, 16), nn.Linear(16, 48), nn.Linear(16, 16)
        self.register_buffer("seen", torch.zeros(()))

    def forward(self, tokens: torch.Tensor, mask: torch.Tensor) -> tuple[Any, ...]:
        batch, rows = tokens.shape
        self.seen += mask.sum()
        x = self.table(tokens) + torch.arange(rows)[:, None] / rows
        q, k, v = (part.view(batch, rows, 4, 4).transpose(1, 2) for part in self.qkv(x).chunk(3, -1))
        bias = torch.zeros(batch, 1, rows, rows).masked_fill(~mask[:, None, None], -torch.inf)
        mixed = ((q @ k.transpose(-1, -2) / 2 + bias).softmax(-1) @ v).transpose(1, 2).reshape(batch, rows, 16)
        return torch.cat([x[:, :1], self.out(mixed)], 1), rows + 1, self.seen * 1.0


def inputs_of(batch: int, rows: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return a batch of tokens, and which of them are no padding."""
    tokens = torch.randint(0, 32, (batch, rows), generator=torch.Generator().manual_seed(rows))
    return tokens, torch.arange(rows) < torch.arange(batch)[:, None] % rows + 1


def exported_with_dynamic_sizes() -> Any:
    """Return the program."""
    torch.manual_seed(0)
    sizes = {0: Dim("batch", max=64), 1: Dim("rows", max=64)}
    return torch.export.export(Masked(), inputs_of(*CALLS[0]), dynamic_shapes=(sizes, sizes)).run_decompositions({})


def seen_of_dynamic(exported: Any, mesh: Any) -> dict[str, Any]:
    """Return the largest difference from one process at several sizes, and how many graphs ran."""
    program = sdy.propagate(exported, mesh, in_shardings=SHARDINGS).to_torch(mesh, strict=True)
    plain, distances, graphs = exported.module(), [], set()
    with torch.no_grad(), warnings.catch_warnings():
        # A batch of one has no part for each process.
        warnings.simplefilter("ignore")
        for sizes in CALLS:
            inputs = inputs_of(*sizes)
            pairs = list(zip(program(*inputs), plain(*inputs), strict=True))
            assert all(type(got) is type(want) for got, want in pairs)
            distances += [float(torch.as_tensor(got - want).abs().max()) for got, want in pairs]
            graphs.add(id(program.program_at(inputs).graph_module))
    return {"distance": max(distances), "graphs": len(graphs)}
