"""A GPT of eight layers on four processes, trained for some steps, for the tests; prints the losses as JSON.

A case is a schedule and the number of stages: ``ZB-H1:4``.
"""

from __future__ import annotations

import sys

import torch
from torch import nn
from torch.nn import functional

import shardy_py as sdy
from shardy_py.mpmd.torch_pipelining import stages_of
from tests.torch.parallel_processes import run_on_four

LAYERS, MICROBATCHES, STEPS = 8, 8, 5
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


def losses_of_stages(case: str, _folder: str) -> dict[str, list[float]]:
    """Return the losses that the process of the last stage sees, and those of training the whole model there.

    Args:
        case: A schedule and the number of stages, as NAME:STAGES.
    """
    schedule, _, stage_count = case.partition(":")
    model, words, targets = model_and_batch()
    step = LAYERS // int(stage_count)
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
    is_first, is_last = any(stage.is_first for stage in stages), any(stage.is_last for stage in stages)
    history = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        losses: list[torch.Tensor] = []
        runtime.step(*([words] if is_first else []), target=targets if is_last else None, losses=losses)
        optimizer.step()
        if is_last:
            history.append(float(torch.stack(losses).mean()))
    return {"stages": history, "model": losses_of_one_process()} if is_last else {}


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


if __name__ == "__main__":
    run_on_four(losses_of_stages, sys.argv[1:])
