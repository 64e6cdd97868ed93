"""Models of nine kinds, trained on four processes beside one process, for the tests; prints what they saw as JSON.

A case is a model, a mesh, and what compiles it, if anything: ``dense 2x2 compiled`` for the backend ``aot_eager``,
``dense 2x2 inductor`` for code.
"""

from __future__ import annotations

import sys
from typing import Any

import torch
from torch import nn
from torch.distributed.device_mesh import init_device_mesh

import shardy_py as sdy
from tests.torch.parallel_processes import difference_after_reload, run_on_four
from tests.torch.trained_models import TRAINED_MODELS, TrainedModel
from tests.torch.user_models import USER_MODELS

STEPS = 10
MESHES = {"4": {"model": 4}, "2x2": {"data": 2, "model": 2}}
BACKENDS = {"compiled": "aot_eager", "inductor": "inductor"}
OTHER = {"4": "2x2", "2x2": "4"}


def parallel_form(case: TrainedModel, model: nn.Module, mesh_name: str) -> nn.Module:
    """Return the parallel form of a model, with its loss, on a mesh."""
    sizes = MESHES[mesh_name]
    mesh = init_device_mesh("cpu", tuple(sizes.values()), mesh_dim_names=tuple(sizes))
    targets, shardings = case.targets(), case.shardings(sizes)
    parallel: nn.Module = sdy.parallelize(
        model, mesh, case.inputs(), shardings, loss=case.loss, example_targets=targets
    )
    return parallel


def seen_of(name: str, folder: str) -> dict[str, Any]:
    """Return the largest differences of losses while a model trains, and then; and of its state on another mesh.

    Args:
        name: The case.
        folder: Where checkpoints go, in a case that nothing compiles.
    """
    model_name, mesh_name, *compiled = name.split()
    # Inductor draws random numbers of its own: dropout would have another mask than in one process.
    torch._inductor.config.fallback_random = True
    case = {**TRAINED_MODELS, **USER_MODELS}[model_name]
    torch.manual_seed(0)
    plain = case.make()
    parallel = parallel_form(case, plain, mesh_name)
    run = torch.compile(parallel, fullgraph=True, backend=BACKENDS[compiled[0]]) if compiled else parallel
    optimizers = [torch.optim.AdamW(item.parameters(), lr=1e-3) for item in (plain, parallel)]
    inputs, targets = case.inputs(), case.targets()

    def losses() -> tuple[torch.Tensor, torch.Tensor]:
        state = torch.get_rng_state()
        first = case.loss(plain(*inputs), *targets)
        torch.set_rng_state(state)
        return first, run(*inputs, *targets)

    differences = []
    for _ in range(STEPS):
        pair = losses()
        for loss, optimizer, module in zip(pair, optimizers, (plain, parallel), strict=True):
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(module.parameters(), 1.0)
            optimizer.step()
        differences.append(abs(float(pair[0].detach()) - float(pair[1].detach())))
    plain.eval(), parallel.eval()
    with torch.no_grad():
        pair = losses()
    evaluated = abs(float(pair[0]) - float(pair[1]))
    seen = {"loss": max(differences), "evaluated": evaluated, "first": float(pair[0])}
    if compiled:
        # The state is that of the same program, without a compiler.
        return {**seen, "reloaded": 0}
    other = parallel_form(case, case.make(), OTHER[mesh_name])
    return {**seen, "reloaded": difference_after_reload(parallel, other, f"{folder}/{name}")}


if __name__ == "__main__":
    run_on_four(seen_of, sys.argv[1:])
