"""Parallel modules on four processes, for the tests: one start for all cases; prints what they saw as JSON.

Each case trains a module and its parallel form side by side, from equal parameters.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
import torch.distributed.checkpoint as checkpoint
from attrs import frozen
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.nn import functional

import shardy_py as sdy
from tests.torch.forked import run_forked
from tests.torch.models import Decoder
from tests.torch.routed_experts import RoutedExperts

STEPS = 3


class Images(nn.Module):
    """A convolution, a normalization with running statistics, and a dropout."""

    def __init__(self) -> None:
        super().__init__()
        # A bias before a normalization has no gradient but rounding.
        self.conv, self.norm = nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8)
        self.drop = nn.Dropout(0.2)
        self.head = nn.Linear(8 * 36, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.drop(self.norm(self.conv(x)).relu()).flatten(1))


class Perceptron(nn.Module):
    """Two layers, the second of which is added to the input."""

    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(16, 64), nn.Linear(64, 16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.down(functional.gelu(self.up(x)))


class Words(nn.Module):
    """A vocabulary that does not divide, whose table is that of the head, too."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.norm, self.head = nn.Embedding(51, 16), nn.LayerNorm(16), nn.Linear(16, 51, bias=False)
        self.head.weight = self.table.weight

    def forward(self, tokens: torch.Tensor, *, scale: float = 1.0) -> dict[str, torch.Tensor]:
        return {"logits": self.head(self.norm(self.table(tokens))) * scale}


def _tied_decoder() -> nn.Module:
    model = Decoder()
    model.lm_head.weight = model.embed_tokens.weight
    return model


def _token_loss(output: Any, labels: torch.Tensor) -> torch.Tensor:
    logits = output["logits"] if isinstance(output, dict) else output[0]
    return functional.cross_entropy(logits.flatten(0, 1), labels.flatten())


@frozen
class Case:
    """A module to train.

    Args:
        make: Makes it.
        mesh: The sizes of the mesh.
        shape: The shape of its input.
        shardings: What is given.
        words: The size of the vocabulary of the inputs; 0 for floats.
        is_loss_inside: Whether the parallel module computes the loss.
        is_compiled: Whether the processes compile it; they share the code.
        kwargs: Inputs by name.
        options: Further arguments of `shardy_py.parallelize`.
    """

    make: Callable[[], nn.Module]
    mesh: Mapping[str, int]
    shape: tuple[int, ...]
    shardings: Mapping[Any, Any]
    words: int = 0
    is_loss_inside: bool = False
    is_compiled: bool = False
    kwargs: Mapping[str, Any] = {}
    options: Mapping[str, Any] = {}


_GRID = {"data": 2, "model": 2}
_TENSOR = {"*.[qkv]_proj.weight": ("model", None), "*.gate_proj.weight": ("model", None)}
_DECODER = {"tokens": ("data",), "labels": ("data",), **_TENSOR, "embed_tokens.weight": ("model", None)}
_BOTH = {"x": ("data",), "up.weight": ("model", "data"), "down.weight": ("data", "model")}
_WORDS = {"tokens": ("data",), "head.weight": ("model", None)}
_BUCKETS = {"bucket_bytes": 25e6}
CASES = {
    "decoder": Case(_tied_decoder, _GRID, (4, 8), _DECODER, 32, is_loss_inside=True, options=_BUCKETS),
    "decoder_4": Case(Decoder, {"model": 4}, (4, 8), {**_TENSOR, "embed_tokens.weight": ("model", None)}, 32),
    "images": Case(Images, _GRID, (8, 3, 6, 6), {0: ("data",)}),
    "zero": Case(Perceptron, {"data": 4}, (8, 16), {"x": ("data",), "*.weight": ("data", None)}, options=_BUCKETS),
    "grid": Case(Perceptron, _GRID, (2048, 16), _BOTH, options={"dynamic_shapes": True}),
    "compiled": Case(Perceptron, _GRID, (8, 16), _BOTH, is_compiled=True, options=_BUCKETS),
    "routed": Case(lambda: RoutedExperts("data"), _GRID, (16, 8), {"x": ("data",)}),
    "planned": Case(
        Perceptron, _GRID, (8, 16), {"up.bias": ("model",)}, options={"plan": "auto", "budget_memory": 15_000}
    ),
    "words": Case(
        Words, _GRID, (5, 6), {"tokens": ("data",), "head.weight": ("model", None)}, 51, kwargs={"scale": 0.5}
    ),
}


def trained(case: Case) -> tuple[nn.Module, nn.Module, dict[str, Any]]:
    """Return a module and its parallel form after some steps, with the largest differences on the way."""
    mesh = init_device_mesh("cpu", tuple(case.mesh.values()), mesh_dim_names=tuple(case.mesh))
    torch.manual_seed(0)
    plain = case.make()
    x = torch.randint(0, case.words, case.shape) if case.words else torch.randn(case.shape)
    labels = torch.randint(0, case.words or 1, case.shape)
    inside = {"loss": _token_loss, "example_targets": (labels,)} if case.is_loss_inside else {}
    kwargs = dict(case.kwargs)
    parallel = sdy.parallelize(plain, mesh, (x,), case.shardings, example_kwargs=kwargs, **inside, **case.options)
    run = torch.compile(parallel, fullgraph=True) if case.is_compiled else parallel

    def loss_of(output: Any) -> torch.Tensor:
        return _token_loss(output, labels) if case.words else (output**2).mean()

    optimizers = [torch.optim.AdamW(item.parameters(), lr=1e-2) for item in (plain, parallel)]
    losses, norms = [], []
    for _ in range(STEPS):
        state = torch.get_rng_state()
        first = loss_of(plain(x, **kwargs))
        torch.set_rng_state(state)
        second = run(x, labels, **kwargs) if case.is_loss_inside else loss_of(run(x, **kwargs))
        for loss, optimizer, module in zip((first, second), optimizers, (plain, parallel), strict=True):
            optimizer.zero_grad()
            loss.backward()
            norm = nn.utils.clip_grad_norm_(module.parameters(), 1.0)
            norms.append(float(norm.full_tensor() if hasattr(norm, "full_tensor") else norm))
            optimizer.step()
        losses.append([float(first.detach()), float(second.detach())])
    seen = {
        "loss": max(abs(left - right) for left, right in losses),
        "norm": max(abs(left - right) / left for left, right in zip(norms[::2], norms[1::2], strict=True)),
        "state": _distance(plain, parallel),
        "evaluated": _evaluated(case, plain, parallel, x, labels),
        "placements": {name: [str(item) for item in p.placements] for name, p in parallel.named_parameters()},
        "is_kept": isinstance(parallel, type(plain)),
        "counts": dict(next(iter(parallel.sdy_program.steps.values())).counts),
    }
    return plain, parallel, seen


def _distance(plain: nn.Module, parallel: nn.Module) -> float:
    """Return the largest difference of any tensor of the states."""
    state = parallel.state_dict()
    assert list(state) == list(plain.state_dict())
    pairs = [(item.double(), state[name].full_tensor().double()) for name, item in plain.state_dict().items()]
    return max(float((left - right).abs().max()) for left, right in pairs)


def _evaluated(case: Case, plain: nn.Module, parallel: nn.Module, x: torch.Tensor, labels: torch.Tensor) -> float:
    """Return the largest difference of outputs without training, without a gradient."""
    plain.eval(), parallel.eval()
    with torch.no_grad():
        want = plain(x, **case.kwargs)
        got = parallel(x, labels) if case.is_loss_inside else parallel(x, **case.kwargs)
        want = _token_loss(want, labels) if case.is_loss_inside else want
    leaves = torch.utils._pytree.tree_leaves
    return max(float((left - right).abs().max()) for left, right in zip(leaves(want), leaves(got), strict=True))


def gradient_distance(plain: nn.Module, parallel: nn.Module, x: torch.Tensor) -> float:
    """Return the largest difference of any gradient on a batch."""
    for module in (plain, parallel):
        module.zero_grad()
        (module(x) ** 2).mean().backward()
    pairs = zip(plain.parameters(), parallel.parameters(), strict=True)
    return max(float((left.grad - right.grad.full_tensor()).abs().max()) for left, right in pairs)


def reloaded(parallel: nn.Module, folder: str) -> float:
    """Return the largest difference of a state that is saved, and read onto the mesh of `zero`."""
    torch.manual_seed(7)
    case = CASES["zero"]
    other = sdy.parallelize(Perceptron(), case.mesh, (torch.randn(case.shape),), case.shardings)
    return difference_after_reload(parallel, other, folder)


def difference_after_reload(parallel: nn.Module, other: nn.Module, folder: str) -> float:
    """Return the largest difference of the state of a module that is saved, and read by one on another mesh."""
    checkpoint.save(parallel.state_dict(), checkpoint_id=folder)
    state = other.state_dict()
    checkpoint.load(state, checkpoint_id=folder)
    other.load_state_dict(state)
    pairs = zip(parallel.state_dict().values(), other.state_dict().values(), strict=True)
    return max(float((saved.full_tensor() - read.full_tensor()).abs().max()) for saved, read in pairs)


def seen_of(case: str, folder: str) -> dict[str, Any]:
    """Return what a process sees of a case."""
    plain, parallel, seen = trained(CASES[case])
    if case == "grid":
        seen["other_sizes"] = max(gradient_distance(plain, parallel, torch.randn(size, 16)) for size in (1024, 4096))
        seen["graphs"] = len({id(step.graphs) for step in parallel.sdy_program.steps.values()})
        seen["reloaded"] = reloaded(parallel, f"{folder}/checkpoint")
    return seen


def run_on_four(run: Callable[[str, str], dict[str, Any]], cases: Sequence[str]) -> None:
    """Run cases on four processes and print what each saw of each."""

    def one(_: int, folder: str) -> dict[str, Any]:
        warnings.simplefilter("ignore")
        return {name: run(name, folder) for name in cases}

    collected = run_forked(one)
    print(json.dumps({name: [seen[name] for seen in collected] for name in cases}))


if __name__ == "__main__":
    run_on_four(seen_of, sys.argv[1:] or list(CASES))
