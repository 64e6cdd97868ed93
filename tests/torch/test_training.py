"""A training step with Adam on shards."""

from __future__ import annotations

from collections import Counter

import pytest
import torch

from shardy_py.targets.torch import make_local_torch_program
from tests.torch.models import Decoder
from tests.torch.training import largest_difference, make_state, propagated_step, traced_step

pytestmark = pytest.mark.torch


def test_a_training_step_gives_the_loss_and_the_state_of_one_process() -> None:
    """Forward, backward and Adam are one graph; loss, parameters, moments and the step number are equal."""
    model = Decoder()
    state = make_state(model)
    tokens, labels = torch.randint(0, 32, (4, 8)), torch.randint(0, 32, (4, 8))
    graph = traced_step(model, state, (tokens, labels))
    result = propagated_step(graph, state, {"data": 2, "model": 2})
    local = make_local_torch_program(result._explicit, result.registry, strict=True)
    given = [*state.values(), tokens, labels]
    made = local.simulate(*given)
    found = [made[output.result] for output in local.origin.outputs if output.result is not None]
    assert largest_difference(found, graph(*given)) <= 1e-5
    assert Counter(item.kind for item in result.redistributions)["all_reduce"] > len(list(model.parameters())) // 2
