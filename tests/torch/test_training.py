"""A training step with Adam on shards."""

from __future__ import annotations

from collections import Counter
from fnmatch import fnmatchcase

import pytest
import torch

import shardy_py as sdy
from shardy_py.targets.torch import make_local_torch_program
from tests.torch.models import Decoder
from tests.torch.training import make_state, traced_step

pytestmark = pytest.mark.torch
GLOBS = ("*.[qkv]_proj.weight", "*.gate_proj.weight", "embed_tokens.weight")


def test_a_training_step_gives_the_loss_and_the_state_of_one_process() -> None:
    """Forward, backward and Adam are one graph; loss, parameters, moments and the step number are equal."""
    model = Decoder()
    state = make_state(model)
    tokens, labels = torch.randint(0, 32, (4, 8)), torch.randint(0, 32, (4, 8))
    graph = traced_step(model, state, (tokens, labels))
    shardings: dict[int, tuple[str | None, ...]] = {len(state): ("data",), len(state) + 1: ("data",)}
    for number, key in enumerate(state):
        if any(fnmatchcase(key.removeprefix("first.").removeprefix("second."), glob) for glob in GLOBS):
            shardings[number] = ("model", None)
    result = sdy.propagate(graph, {"data": 2, "model": 2}, in_shardings=shardings, strict=True)
    local = make_local_torch_program(result._explicit, result.registry, strict=True)
    given = [*state.values(), tokens, labels]
    made = local.simulate(*given)
    for key, output, want in zip(["loss", *state], local.origin.outputs, graph(*given), strict=True):
        assert output.result is not None
        difference = (made[output.result] - want).abs().max() / want.abs().max()
        assert float(difference) <= 1e-5, key
    assert Counter(item.kind for item in result.redistributions)["all_reduce"] > len(list(model.parameters())) // 2
