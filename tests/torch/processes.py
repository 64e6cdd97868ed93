"""One process of four, for the tests: runs the decoder on its shards and writes what it saw as JSON."""

from __future__ import annotations

import json
import sys

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh

import shardy_py as sdy
from tests.torch.models import exported_decoder
from tests.torch.test_import import GLOBS


def main(rank: int, store: str, batch: int) -> None:
    """Run the decoder."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=4)
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("data", "model"))
    exported = exported_decoder(batch)
    result = sdy.propagate(exported, mesh, in_shardings=GLOBS)
    program = result.to_torch(mesh, strict=True)
    tokens = torch.randint(0, 32, (batch, 8), generator=torch.Generator().manual_seed(1))
    got, want = program(tokens), exported.module()(tokens)
    distance = max(float((a - b).abs().max() / b.abs().max()) for a, b in zip(got, want, strict=True))
    predicted: dict[str, int] = {}
    for item in result.redistributions:
        predicted[item.kind] = predicted.get(item.kind, 0) + 1
    seen = {"distance": distance, "ran": program.collectives, "predicted": predicted}
    placed = result.distribute(exported.module(), mesh)["layers.0.self_attn.o_proj.weight"]
    seen["placements"] = [str(item) for item in placed.placements]
    print(json.dumps(seen))
    dist.destroy_process_group()


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
