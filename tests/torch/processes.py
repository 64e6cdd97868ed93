"""Four processes, for the tests: each runs the decoder on its shards, for some batches; prints what they saw."""

from __future__ import annotations

import json
import sys
import warnings
from collections import Counter
from collections.abc import Sequence
from typing import Any

import torch
from torch.distributed.device_mesh import init_device_mesh

import shardy_py as sdy
from shardy_py.torch.parallel.collectives import ProcessDevices
from tests.torch.dynamic_programs import exported_with_dynamic_sizes, seen_of_dynamic
from tests.torch.forked import run_forked
from tests.torch.models import exported_decoder
from tests.torch.test_import import GLOBS


class CachedAttention(torch.nn.Module):
    """A step of attention that writes keys and values at a place of a cache, and takes one row of a table."""

    def forward(
        self, q: torch.Tensor, kv: torch.Tensor, cache: torch.Tensor, place: torch.Tensor, table: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        cache = cache.index_copy(2, place, kv)
        keys, values = cache + table.index_select(0, place), cache
        scores = q @ keys.transpose(-1, -2)
        hidden = torch.arange(cache.shape[2]) > place
        return scores.masked_fill(hidden, -torch.inf).softmax(-1) @ values, cache


def seen_of_cache(size: int) -> dict[str, Any]:
    """Run a step with a cache whose rows are on all devices, and return what this process saw."""
    mesh = init_device_mesh("cpu", (4,), mesh_dim_names=("rows",))
    generator = torch.Generator().manual_seed(3)
    q, kv, cache = (torch.randn(2, 4, rows, 8, generator=generator) for rows in (1, 1, size))
    inputs = q, kv, cache, torch.tensor([size - 2]), torch.randn(size, 8, generator=generator)
    exported = torch.export.export(CachedAttention(), inputs).run_decompositions({})
    shardings = {"cache": (None, None, "rows"), "table": ("rows",)}
    result = sdy.propagate(exported, mesh, in_shardings=shardings, keep_uneven_shardings=True)
    program = result.to_torch(mesh, strict=True)
    with torch.no_grad():
        pairs = zip(program(*inputs), exported.module()(*inputs), strict=True)
    distance = max(float((got - want).abs().max()) for got, want in pairs)
    predicted = dict(Counter(item.kind for item in result.redistributions))
    return {"distance": distance, "ran": dict(program.collectives), "predicted": predicted}


def seen_of(batch: int, rank: int) -> dict[str, Any]:
    """Run the decoder on a batch, and return what this process saw."""
    torch.manual_seed(0)
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("data", "model"))
    exported = exported_decoder(batch)
    result = sdy.propagate(exported, mesh, in_shardings=GLOBS)
    program = result.to_torch(mesh, strict=True)
    tokens = torch.randint(0, 32, (batch, 8), generator=torch.Generator().manual_seed(1))
    with warnings.catch_warnings(record=True) as seen_warnings:
        warnings.simplefilter("always")
        program(tokens)
        with torch.no_grad():
            got, want = program(tokens), exported.module()(tokens)
    program.devices.counts = {kind: count // 2 for kind, count in program.devices.counts.items()}
    distance = max(float((a - b).abs().max() / b.abs().max()) for a, b in zip(got, want, strict=True))
    predicted = Counter(item.kind for item in result.redistributions)
    seen: dict[str, Any] = {"distance": distance, "ran": program.collectives, "predicted": dict(predicted)}
    placed = result.distribute(exported.module(), mesh)["layers.0.self_attn.o_proj.weight"]
    seen["placements"] = [str(item) for item in placed.placements]
    seen["warned"] = ["no-gradients" in str(item.message) for item in seen_warnings].count(True)
    seen["combined"] = _combined(program.devices, rank)
    seen["cache"] = seen_of_cache(2 * batch)
    return seen


def _combined(devices: ProcessDevices, rank: int) -> bool:
    """Return whether sums that are scattered along any dimension, and truth values, are those of all processes."""
    groups = [[0, 1, 2, 3]]
    values = [torch.arange(48.0).view(4, 3, 4) * (number + 1) for number in range(4)]
    flags = [value % (number + 2) < number for number, value in enumerate(values)]
    right = [
        torch.equal(devices.reduce_scatter([values[rank]], groups, "add", dim)[0], sum(values).chunk(4, dim)[rank])
        for dim in (0, 2)
    ]
    right.append(torch.equal(devices.reduce([flags[rank]], groups, "or")[0], torch.stack(flags).any(0)))
    right.append(torch.equal(devices.reduce([flags[rank]], groups, "and")[0], torch.stack(flags).all(0)))
    scattered = devices.reduce_scatter([flags[rank]], groups, "add", 0)[0]
    return all([*right, torch.equal(scattered, torch.stack(flags).any(0)[rank : rank + 1])])


def main(batches: Sequence[str]) -> None:
    """Run the batches and print what the processes saw of each."""
    exported = exported_with_dynamic_sizes()

    def seen_of_all(rank: int, _: str) -> dict[str, Any]:
        seen = {batch: seen_of(int(batch), rank) for batch in batches}
        mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("data", "model"))
        return {**seen, "dynamic": seen_of_dynamic(exported, mesh)}

    collected = run_forked(seen_of_all)
    print(json.dumps({name: [seen[name] for seen in collected] for name in (*batches, "dynamic")}))


if __name__ == "__main__":
    main(sys.argv[1:])
