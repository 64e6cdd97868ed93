"""A training step as one graph: forward, backward and Adam, on tensors that are all inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

import torch
from torch import nn
from torch.func import functional_call
from torch.fx.experimental.proxy_tensor import make_fx

import shardy_py as sdy

RATE, FIRST, SECOND = 1e-2, 0.9, 0.999
GLOBS = ("*.[qkv]_proj.weight", "*.gate_proj.weight", "*embed_tokens.weight")


def make_state(model: nn.Module) -> dict[str, torch.Tensor]:
    """Return the parameters of a model with random moments, and the number of the last step."""
    generator = torch.Generator().manual_seed(3)
    state = {name: item.detach() for name, item in model.named_parameters()}
    for name, item in list(state.items()):
        state[f"first.{name}"] = torch.randn(item.shape, generator=generator) * 0.1
        state[f"second.{name}"] = torch.rand(item.shape, generator=generator) * 0.1
    return {**state, "step": torch.tensor(3.0)}


def traced_step(
    model: nn.Module, state: dict[str, torch.Tensor], inputs: tuple[torch.Tensor, torch.Tensor]
) -> torch.fx.GraphModule:
    """Return the graph of a step: it takes the state in order, tokens and labels; it gives the loss and the new state.

    Args:
        model: The model, whose first output are logits.
        state: The state, as `make_state` makes it.
        inputs: Tokens and labels.
    """
    names = [name for name, _ in model.named_parameters()]
    keys = list(state)

    def step(*tensors: torch.Tensor) -> list[torch.Tensor]:
        known = dict(zip(keys, tensors, strict=False))
        tokens, labels = tensors[len(keys) :]
        parameters = {name: known[name].detach().requires_grad_() for name in names}
        with torch.enable_grad():
            logits: Any = functional_call(model, parameters, (tokens,))
            logits = logits[0] if isinstance(logits, tuple) else logits.logits
            loss = nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten())
            gradients = torch.autograd.grad(loss, list(parameters.values()))
        new = _adam(known, dict(zip(names, gradients, strict=True)))
        return [loss.detach(), *(new[key] for key in keys)]

    # Buffers of the model are constants of the graph.
    return make_fx(step, tracing_mode="fake", _allow_non_fake_inputs=True)(*state.values(), *inputs)


def propagated_step(
    graph: torch.fx.GraphModule, state: Mapping[str, torch.Tensor], mesh: Mapping[str, int]
) -> sdy.Result:
    """Return a step with shardings: the batch on ``data``, and some parameters with their moments on ``model``.

    Args:
        graph: The step, as `traced_step` makes it.
        state: The state that it takes.
        mesh: The sizes of the mesh.
    """
    rows = ("model", None)
    shardings: dict[int, tuple[str | None, ...]] = {
        number: rows
        for number, key in enumerate(state)
        if any(fnmatchcase(key.removeprefix("first.").removeprefix("second."), glob) for glob in GLOBS)
    }
    if "data" in mesh:
        shardings |= {len(state): ("data",), len(state) + 1: ("data",)}
    return sdy.propagate(graph, mesh, in_shardings=shardings, strict=True)


def largest_difference(got: Sequence[torch.Tensor], want: Sequence[torch.Tensor]) -> float:
    """Return the largest difference of any tensor of a step, relative to its largest number."""
    return max(float((left - right).abs().max() / right.abs().max()) for left, right in zip(got, want, strict=True))


def _adam(known: dict[str, torch.Tensor], gradients: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    count = known["step"] + 1
    new = {"step": count}
    for name, gradient in gradients.items():
        first = FIRST * known[f"first.{name}"] + (1 - FIRST) * gradient
        second = SECOND * known[f"second.{name}"] + (1 - SECOND) * gradient * gradient
        scale = (second / (1 - SECOND**count)).sqrt() + 1e-8
        new[name] = known[name] - RATE * first / (1 - FIRST**count) / scale
        new[f"first.{name}"], new[f"second.{name}"] = first, second
    return new
