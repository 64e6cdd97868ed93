"""Checkpoints of activations: what is in one is computed again by the backward pass, and not saved."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts

import shardy_py as sdy
from tests.torch.models import Layer

pytestmark = pytest.mark.torch
MUST_SAVE = (torch.ops.aten.mm.default, torch.ops.aten.addmm.default)


@pytest.fixture(scope="module")
def mesh() -> Iterator[Any]:
    """A device mesh of one process."""
    from torch.testing._internal.distributed.fake_pg import FakeStore

    dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=1)
    yield dist.device_mesh.init_device_mesh("cpu", (1,), mesh_dim_names=("model",))
    dist.destroy_process_group()


def _policy(context: Any, operator: Any, *args: Any, **kwargs: Any) -> CheckpointPolicy:
    return CheckpointPolicy.MUST_SAVE if operator in MUST_SAVE else CheckpointPolicy.PREFER_RECOMPUTE


class Stack(nn.Module):
    """A layer with a dropout in a checkpoint of some kind."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind, self.drop = kind, nn.Dropout(0.2)
        self.layers = nn.ModuleList(Layer(32, 4) for _ in range(1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            run = functools.partial(self._run, layer)
            if self.kind == "none":
                x = run(x)
            elif self.kind == "selective":
                contexts = functools.partial(create_selective_checkpoint_contexts, _policy)
                x = checkpoint(run, x, use_reentrant=False, context_fn=contexts)
            else:
                x = checkpoint(run, x, use_reentrant=self.kind == "reentrant")
        return x

    def _run(self, layer: nn.Module, x: torch.Tensor) -> torch.Tensor:
        return self.drop(layer(x))


@pytest.fixture(scope="module")
def trained(mesh: Any) -> dict[str, tuple[set[str], set[str]]]:
    """Operators that run forward and backward by kind of checkpoint, after the gradients were compared."""
    return {kind: _passes(kind, mesh) for kind in ("none", "hooks", "reentrant", "selective")}


def _passes(kind: str, mesh: Any) -> tuple[set[str], set[str]]:
    torch.manual_seed(0)
    model, x = Stack(kind), torch.randn(4, 8, 32, requires_grad=True)
    parallel = sdy.parallelize(model, mesh, x)
    for module in (model, parallel):
        torch.manual_seed(1)
        module(x).pow(2).sum().backward()
    for name, parameter in model.named_parameters():
        torch.testing.assert_close(parallel.get_parameter(name).grad.full_tensor(), parameter.grad)
    (step,) = parallel.sdy_program.steps.values()
    saved = next(iter(step.graphs.forward.graph.find_nodes(op="output"))).args[0][step.graphs.output_count :]
    run_again = (str(node.target) for node in step.graphs.backward.graph.nodes)
    return {str(node.target) for node in saved}, set(run_again)


@pytest.mark.parametrize("kind", ["hooks", "reentrant"])
def test_what_is_in_a_checkpoint_runs_again(kind: str, trained: dict[str, tuple[set[str], set[str]]]) -> None:
    """Norms and attention run in the backward pass; masks of dropout are saved, since they would be drawn anew."""
    attention = "aten._scaled_dot_product_flash_attention_for_cpu.default"
    assert attention not in trained["none"][1]
    saved, again = trained[kind]
    assert {attention, "aten.native_layer_norm.default", "aten.mm.default"} <= again
    assert not again & {"aten.bernoulli.p", "aten.rand.default", "aten.native_dropout.default"}
    assert not saved & {"aten.mm.default", "aten.sigmoid.default", "aten.view.default"}


def test_selective_checkpoints_save_what_they_say(trained: dict[str, tuple[set[str], set[str]]]) -> None:
    """The products are saved, what is between them is computed again."""
    saved, again = trained["selective"]
    assert "aten.mm.default" in saved
    assert "aten.native_layer_norm.default" in again
