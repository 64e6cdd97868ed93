"""Parallel modules of PyTorch beside hand-written plans: bytes of a training step, and its time beside DTensor's.

``python -m benchmarks.torch_plans`` starts four processes. For each model it prints the bytes that a device sends in a
step with tensor parallelism, the collectives as they were predicted and as they ran, and the bytes of Megatron's plan.
Then the time of a step of Llama on two times two devices, beside that of DTensor's tensor parallelism with FSDP2 on the
same plan; both are measured in turn. With ``--check`` it fails where a ratio is above one.
"""

from __future__ import annotations

import argparse
import multiprocessing
import statistics
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.nn import functional

import shardy_py as sdy

BATCH, LENGTH, WIDTH, HEADS, INNER, VOCABULARY, LAYERS, EXPERTS = 4, 32, 128, 8, 384, 1024, 2, 4
DEVICES = 4
MODELS = ("llama", "gpt2", "mixtral")
BUCKET_BYTES = 25e6


class Gated(nn.Module):
    """A gated network."""

    def __init__(self) -> None:
        super().__init__()
        self.w1, self.w3 = (nn.Linear(WIDTH, INNER, bias=False) for _ in range(2))
        self.w2 = nn.Linear(INNER, WIDTH, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return what is added to the stream."""
        return self.w2(functional.silu(self.w1(x)) * self.w3(x))


class Block(nn.Module):
    """Attention, and a network behind it: gated, plain, or experts of which each token has two."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        norm = nn.LayerNorm if kind == "gpt2" else nn.RMSNorm
        self.kind, self.norm1, self.norm2 = kind, norm(WIDTH), norm(WIDTH)
        self.q, self.k, self.v, self.o = (nn.Linear(WIDTH, WIDTH, bias=kind == "gpt2") for _ in range(4))
        if kind == "mixtral":
            self.gate = nn.Linear(WIDTH, EXPERTS, bias=False)
            self.experts = nn.ModuleList(Gated() for _ in range(EXPERTS))
        elif kind == "llama":
            self.mlp = Gated()
        else:
            self.w1, self.w2 = nn.Linear(WIDTH, INNER), nn.Linear(INNER, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the stream behind the block."""
        y = self.norm1(x)
        shape = *x.shape[:2], -1, WIDTH // HEADS
        q, k, v = (layer(y).view(shape).transpose(1, 2) for layer in (self.q, self.k, self.v))
        mask = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).tril()
        scores = (q @ k.transpose(-2, -1) * (WIDTH // HEADS) ** -0.5).masked_fill(~mask, float("-inf"))
        x = x + self.o((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))
        return x + self.network(self.norm2(x))

    def network(self, y: torch.Tensor) -> torch.Tensor:
        """Return what is added to the stream."""
        if self.kind == "gpt2":
            return self.w2(functional.gelu(self.w1(y)))
        if self.kind == "llama":
            return self.mlp(y)
        weights, chosen = self.gate(y).softmax(-1).topk(2, -1)
        share = torch.zeros(*y.shape[:2], EXPERTS).scatter(-1, chosen, weights)
        # All experts see all tokens: how many go to one depends on data.
        return sum(expert(y) * share[..., number, None] for number, expert in enumerate(self.experts))


class Decoder(nn.Module):
    """A decoder of some kind of blocks."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, WIDTH)
        self.positions = nn.Parameter(torch.randn(LENGTH, WIDTH) * 0.02) if kind == "gpt2" else None
        self.layers = nn.ModuleList(Block(kind) for _ in range(LAYERS))
        self.norm, self.head = nn.RMSNorm(WIDTH), nn.Linear(WIDTH, VOCABULARY, bias=False)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Return the logits."""
        x = self.embed(tokens)
        x = x if self.positions is None else x + self.positions
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x))


def loss_of(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Return the cross entropy of all tokens."""
    return functional.cross_entropy(logits.flatten(0, 1), labels.flatten())


def megatron_bytes(kind: str) -> float:
    """Return the bytes that a device sends in a step of Megatron's plan.

    Forward it sums the embedding and two results of each layer, backward two gradients of each layer and that of the
    head's input. The loss sums three numbers for each token: the maximum, the sum and the logit of the label. Where
    each device has a part of every expert, the gradients of the weights of a token's two experts are sums, too.
    """
    stream, rows = BATCH * LENGTH * WIDTH * 4, BATCH * LENGTH * 4
    weights = 2 * LAYERS if kind == "mixtral" else 0
    return _sent("all_reduce", (2 + 4 * LAYERS) * stream + (3 + weights) * rows)


def _sent(kind: str, size: float) -> float:
    """Return the bytes that each of the devices sends of an operand of a collective."""
    return size * (DEVICES - 1) * {"all_reduce": 2 / DEVICES, "all_gather": 1}.get(kind, 1 / DEVICES)


def compare_bytes(kind: str) -> float:
    """Print the bytes of a model, and return their ratio to those of Megatron's plan.

    Raises:
        AssertionError: other collectives ran than were predicted.
    """
    from torch.distributed.tensor.debug import CommDebugMode

    mesh = init_device_mesh("cpu", (DEVICES,), mesh_dim_names=("model",))
    rows: Mapping[str, Any] = {"*.[qkv].weight": ("model", None), "embed.weight": ("model", None)}
    tokens, labels = (torch.randint(0, VOCABULARY, (BATCH, LENGTH)) for _ in range(2))
    shardings: dict[Any, Any] = {**rows, "*.w1.weight": ("model", None), "head.weight": ("model", None)}
    parallel = sdy.parallelize(Decoder(kind), mesh, tokens, shardings, loss=loss_of, example_targets=(labels,))
    (step,) = parallel.sdy_program.steps.values()
    moved = step.result.redistributions
    with CommDebugMode() as counted:
        parallel(tokens, labels).backward()
    ran = sum(counted.get_comm_counts().values())
    assert ran == len(moved), f"{len(moved)} collectives were predicted, and {ran} ran"
    ours, theirs = sum(_sent(item.kind, item.bytes) for item in moved), megatron_bytes(kind)
    kinds = ", ".join(f"{count} {name}" for name, count in sorted(Counter(item.kind for item in moved).items()))
    ratio = ours / theirs
    _print(f"{kind:8} bytes {ours:12,.0f}, Megatron {theirs:12,.0f}, ratio {ratio:.3f}; ran as predicted: {kinds}")
    return ratio


def compare_times(rounds: int) -> float:
    """Print the times of a step, and return their ratio.

    Args:
        rounds: How many steps of each are measured.
    """
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("data", "model"))
    tokens, labels = (torch.randint(0, VOCABULARY, (BATCH, LENGTH)) for _ in range(2))
    torch.manual_seed(0)
    model = Decoder("llama")
    steps = [_our_step(model, mesh, tokens, labels), _dtensor_step(model, mesh, tokens, labels)]
    for step in steps:
        step(), step()
    times: list[list[float]] = [[], []]
    for _ in range(rounds):
        for step, seen in zip(steps, times, strict=True):
            dist.barrier()
            before = time.perf_counter()
            step()
            dist.barrier()
            seen.append(time.perf_counter() - before)
    ours, theirs = (statistics.median(seen) for seen in times)
    ratio = ours / theirs
    _print(f"llama    step {ours * 1e3:8.1f} ms, DTensor {theirs * 1e3:8.1f} ms, ratio {ratio:.3f}, {rounds} rounds")
    return ratio


def _our_step(model: nn.Module, mesh: Any, tokens: torch.Tensor, labels: torch.Tensor) -> Callable[[], None]:
    # The batch first: what is sharded over `data` otherwise is gathered for it, as by FSDP.
    columns, rows, inputs = '[{"model", "data"}p1, {}]', '[{"data"}p1, {"model"}p1]', '[{"data"}p0, {}]'
    shardings: dict[Any, Any] = {f"*.{name}.weight": columns for name in ("[qkv]", "w[13]")}
    shardings |= {f"*.{name}.weight": rows for name in ("o", "w2")} | {"*norm*.weight": '[{"data"}p1]'}
    shardings |= {"embed.weight": columns, "head.weight": columns, "tokens": inputs, "labels": inputs}
    parallel = sdy.parallelize(
        model,
        mesh,
        tokens,
        shardings,
        loss=loss_of,
        example_targets=(labels,),
        bucket_bytes=BUCKET_BYTES,
    )
    return _step(lambda: parallel(tokens, labels), parallel)


def _dtensor_step(model: nn.Module, mesh: Any, tokens: torch.Tensor, labels: torch.Tensor) -> Callable[[], None]:
    import copy

    from torch.distributed.fsdp import fully_shard
    from torch.distributed.tensor import Replicate
    from torch.distributed.tensor.parallel import (
        ColwiseParallel,
        RowwiseParallel,
        loss_parallel,
        parallelize_module,
    )

    model = copy.deepcopy(model)
    plan = {f"layers.*.{name}": ColwiseParallel() for name in ("q", "k", "v", "mlp.w1", "mlp.w3")}
    plan |= {f"layers.*.{name}": RowwiseParallel() for name in ("o", "mlp.w2")}
    plan |= {"embed": RowwiseParallel(input_layouts=Replicate()), "head": ColwiseParallel(use_local_output=False)}
    parallelize_module(model, mesh["model"], plan)
    for layer in model.layers:
        fully_shard(layer, mesh=mesh["data"])
    fully_shard(model, mesh=mesh["data"])
    rank = mesh.get_local_rank("data")
    rows, targets = tokens.chunk(2)[rank], labels.chunk(2)[rank]

    def loss() -> torch.Tensor:
        return loss_of(model(rows), targets)

    step = _step(loss, model)

    def run() -> None:
        with loss_parallel():
            step()

    return run


def _step(loss: Callable[[], torch.Tensor], module: nn.Module) -> Callable[[], None]:
    """Return a step of training."""
    optimizer = torch.optim.AdamW(module.parameters(), lr=1e-3)

    def run() -> None:
        optimizer.zero_grad()
        loss().backward()
        optimizer.step()

    return run


def _print(text: str) -> None:
    if dist.get_rank() == 0:
        print(text, flush=True)


def _process(rank: int, folder: str, options: argparse.Namespace) -> None:
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    torch.manual_seed(0)
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=DEVICES)
    ratios = [compare_bytes(kind) for kind in options.models]
    if options.rounds:
        ratios.append(compare_times(options.rounds))
    dist.destroy_process_group()
    sys.exit(options.check and max(ratios) > 1)


def main() -> int:
    """Measure in four processes; return 1 where one of them failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=list(MODELS), help=f"some of {', '.join(MODELS)}; all by default")
    parser.add_argument("--rounds", type=int, default=10, help="steps that are measured; 0 for bytes only")
    parser.add_argument("--check", action="store_true", help="fail where a ratio is above one")
    options = parser.parse_args()
    context = multiprocessing.get_context("fork")
    with tempfile.TemporaryDirectory() as folder:
        processes = [context.Process(target=_process, args=(rank, folder, options)) for rank in range(DEVICES)]
        for process in processes:
            process.start()
        for process in processes:
            process.join()
    return int(any(process.exitcode for process in processes))


if __name__ == "__main__":
    sys.exit(main())
