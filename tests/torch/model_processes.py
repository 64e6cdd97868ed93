"""Models on four processes, for the tests: each is exported once, then four forks run it; prints JSON."""

from __future__ import annotations

import json
import multiprocessing
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh

from tests.torch.hugging_face import MESHES, distance, exported, propagated


def run_model(name: str, mesh_name: str, batch: int) -> list[dict[str, Any]]:
    """Return what four processes saw."""
    program, given = exported(name, batch)
    result = propagated(name, program, MESHES[mesh_name])
    want = program.module()(given)
    predicted = dict(Counter(item.kind for item in result.redistributions))
    context = multiprocessing.get_context("fork")
    with tempfile.TemporaryDirectory() as folder:

        def one(rank: int) -> None:
            store = Path(folder, "store")
            dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=4)
            sizes = MESHES[mesh_name]
            mesh = init_device_mesh("cpu", tuple(sizes.values()), mesh_dim_names=tuple(sizes))
            local = result.to_torch(mesh)
            seen = {
                "distance": distance(local(given), want),
                "ran": dict(local.collectives),
                "predicted": predicted,
                "gathered": len(local.local.warnings),
            }
            Path(folder, str(rank)).write_text(json.dumps(seen))
            dist.destroy_process_group()

        started = [context.Process(target=one, args=(rank,)) for rank in range(4)]
        for process in started:
            process.start()
        for process in started:
            process.join(300)
        return [json.loads(Path(folder, str(rank)).read_text()) for rank in range(4)]


def main(cases: list[str]) -> None:
    """Run cases such as ``llama:2x2:5``."""
    # Forks have no threads of their parent.
    torch.set_num_threads(1)
    for case in cases:
        name, mesh, batch = case.split(":")
        print(json.dumps([case, run_model(name, mesh, int(batch))]), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
