"""A GPT of eight layers on four processes, trained for some steps, for the tests; prints the losses as JSON."""

from __future__ import annotations

import json
import multiprocessing
import sys
import tempfile
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional

import shardy_py as sdy
from shardy_py.mpmd.torch_pipelining import stages_of

PROCESSES, LAYERS, MICROBATCHES, STEPS = 4, 8, 8, 5
ROWS, LENGTH, WIDTH, HEADS, WORDS = 2, 4, 8, 2, 16


class Layer(nn.Module):
    """Attention and a feed-forward part, each added to what goes in."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        query, key, value = (
            part.unflatten(-1, (HEADS, WIDTH // HEADS)).transpose(1, 2) for part in self.qkv(x).chunk(3, -1)
        )
        mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).flatten(2))
        return x + self.down(functional.gelu(self.up(x)))


class Gpt(nn.Module):
    """The next words of some words."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(WORDS, WIDTH)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.head = nn.Linear(WIDTH, WORDS)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        x = self.words(words)
        for layer in self.layers:
            x = layer(x)
        return self.head(x)


def loss(scores: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Return the mean loss of a microbatch."""
    return functional.cross_entropy(scores.flatten(0, 1), targets.flatten())


def model_and_batch() -> tuple[Gpt, torch.Tensor, torch.Tensor]:
    """Return the model, the words and their next words, equal in each process."""
    torch.manual_seed(0)
    words = torch.randint(0, WORDS, (MICROBATCHES * ROWS, LENGTH + 1))
    return Gpt(), words[:, :-1].contiguous(), words[:, 1:].contiguous()


def train(rank: int, store: str, schedule: str, stage_count: int, results: Any) -> None:
    """Train the stages of one process."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=PROCESSES)
    model, words, targets = model_and_batch()
    step = LAYERS // stage_count
    runtime = sdy.mpmd.torch_stages(
        model,
        (words[:ROWS],),
        [f"layers.{number}" for number in range(step, LAYERS, step)],
        microbatches=MICROBATCHES,
        schedule=schedule,
        loss=loss,
    )
    stages = stages_of(runtime)
    optimizer = torch.optim.SGD([p for stage in stages for p in stage.submod.parameters()], 0.5)
    history = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        losses: list[torch.Tensor] = []
        is_first, is_last = any(stage.is_first for stage in stages), any(stage.is_last for stage in stages)
        runtime.step(*([words] if is_first else []), target=targets if is_last else None, losses=losses)
        optimizer.step()
        if is_last:
            history.append(float(torch.stack(losses).mean()))
    if history:
        results.put(history)
    dist.destroy_process_group()


def losses_of_one_process() -> list[float]:
    """Return the losses of training the whole model."""
    model, words, targets = model_and_batch()
    optimizer = torch.optim.SGD(model.parameters(), 0.5)
    history = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        value = loss(model(words), targets)
        value.backward()
        optimizer.step()
        history.append(float(value))
    return history


def main() -> None:
    """Run the processes for each schedule that is asked for, as NAME:STAGES."""
    seen = {"one": losses_of_one_process()}
    context = multiprocessing.get_context("spawn")
    for item in sys.argv[1:]:
        schedule, _, stages = item.partition(":")
        with tempfile.TemporaryDirectory() as folder:
            results = context.Queue()
            arguments = (str(Path(folder) / "store"), schedule, int(stages), results)
            processes = [context.Process(target=train, args=(rank, *arguments)) for rank in range(PROCESSES)]
            for process in processes:
                process.start()
            for process in processes:
                process.join()
            if any(process.exitcode for process in processes):
                sys.exit(1)
            seen[item] = results.get()
    print(json.dumps(seen))


if __name__ == "__main__":
    main()
