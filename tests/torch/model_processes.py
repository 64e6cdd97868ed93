"""Models and training steps on four processes, for the tests: one start for all of them; prints JSON.

This process exports and propagates all cases, then four forks run them one after the other.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from attrs import frozen
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.parallel import parallelize_module

import shardy_py as sdy
from shardy_py.torch.parallel import to_parallel_styles
from tests.torch.forked import run_forked
from tests.torch.hugging_face import MESHES, MODELS, distance, exported, propagated
from tests.torch.models import Decoder
from tests.torch.randomized import randomized
from tests.torch.training import largest_difference, make_state, propagated_step, traced_step

Prepared = tuple[Any, Mapping[str, torch.Tensor], Sequence[torch.Tensor], Any]
"""A program, the state that it takes as inputs, all inputs, and what one process computes."""
TRAINED = {"train_decoder": Decoder, "train_llama": lambda: randomized(MODELS["llama"].make())}


@frozen
class Run:
    """A propagated program with its inputs.

    Args:
        case: The name of the case, such as ``llama:2x2:5``.
        mesh: The sizes of the mesh.
        result: The propagated program.
        inputs: The whole tensors of its inputs.
        want: What one process computes.
        predicted: Kind of collective to how often it is predicted.
    """

    case: str
    mesh: Mapping[str, int]
    result: sdy.Result
    inputs: Sequence[torch.Tensor]
    want: Any
    predicted: Mapping[str, int]

    def seen(self) -> dict[str, Any]:
        """Run the program on the processes that are there, and return what this one saw."""
        mesh = init_device_mesh("cpu", tuple(self.mesh.values()), mesh_dim_names=tuple(self.mesh))
        local = self.result.to_torch(mesh, strict=True)
        compare = largest_difference if self.case.startswith("train") else distance
        actual = compare(local(*self.inputs), self.want)
        seen = {"distance": actual, "ran": dict(local.collectives), "predicted": dict(self.predicted)}
        if "data" in self.mesh and self.case.split(":")[0] in MODELS:
            seen["planned"] = distance(self._run_planned(mesh["model"]), self.want)
        return seen

    def _run_planned(self, mesh: Any) -> list[Any]:
        """Return what the eager model computes with the parallel plan, each process on the whole batch."""
        plan = to_parallel_styles(self.result.parallelize_plan(axis="model"))
        model = parallelize_module(randomized(MODELS[self.case.split(":")[0]].make()), mesh, plan)
        with torch.no_grad():
            return torch.utils._pytree.tree_leaves(model(*self.inputs))


def prepared(cases: Sequence[str]) -> list[Run]:
    """Return all cases, propagated; a model of one batch is exported once."""
    known: dict[tuple[str, int], Prepared] = {}
    runs = []
    for case in cases:
        name, mesh_name, size = case.split(":")
        key = name, int(size)
        if key not in known:
            known[key] = _traced(*key) if name in TRAINED else _exported(*key)
        program, state, inputs, want = known[key]
        mesh = MESHES[mesh_name]
        result = propagated_step(program, state, mesh) if state else propagated(name, program, mesh)
        predicted = Counter(item.kind for item in result.redistributions)
        runs.append(Run(case, mesh, result, inputs, want, predicted))
    return runs


def _exported(name: str, batch: int) -> Prepared:
    program, inputs = exported(name, batch)
    with torch.no_grad():
        return program, {}, (inputs,), program.module()(inputs)


def _traced(name: str, batch: int) -> Prepared:
    model = TRAINED[name]()
    state = make_state(model)
    generator = torch.Generator().manual_seed(1)
    tokens, labels = (torch.randint(0, 32, (batch, 8), generator=generator) for _ in range(2))
    graph = traced_step(model, state, (tokens, labels))
    inputs = (*state.values(), tokens, labels)
    return graph, state, inputs, graph(*inputs)


def main(cases: Sequence[str]) -> None:
    """Run cases and print what the four processes saw of each."""
    # Forks have no threads of their parent.
    torch.set_num_threads(1)
    runs = prepared(cases)
    collected = run_forked(lambda *_: {run.case: run.seen() for run in runs})
    print(json.dumps({case: [seen[case] for seen in collected] for case in cases}))


if __name__ == "__main__":
    main(sys.argv[1:])
