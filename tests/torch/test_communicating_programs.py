"""Programs that communicate already, over a dimension of the device mesh that is not that of the propagation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as collectives
from torch.distributed.device_mesh import init_device_mesh
from torch.fx.experimental.proxy_tensor import make_fx

import shardy_py as sdy
from shardy_py.torch.parallel.process_groups import check_groups_can_be_made

pytestmark = pytest.mark.torch


@pytest.fixture(scope="module")
def device_mesh() -> Iterator[Any]:
    """Return a mesh of four processes, of which there is one."""
    fake = pytest.importorskip("torch.testing._internal.distributed.fake_pg")
    dist.init_process_group("fake", store=fake.FakeStore(), rank=0, world_size=4)
    yield init_device_mesh("cpu", (2, 2), mesh_dim_names=("data", "model"))
    dist.destroy_process_group()


@pytest.fixture(scope="module")
def graph(device_mesh: Any) -> Any:
    """Return a layer with tensor parallelism, written by hand."""

    def layer(x: torch.Tensor, weight: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        total = collectives.all_reduce(x @ weight, "sum", (device_mesh, 1))
        return total, collectives.all_gather_tensor(total.t(), 0, (device_mesh, 1))

    return make_fx(layer, tracing_mode="fake")(torch.rand(8, 4), torch.rand(4, 6))


def test_what_a_process_has_is_sharded_further(graph: Any, device_mesh: Any) -> None:
    """The batch is sharded through collectives over another dimension, and these move half of the bytes."""
    result = sdy.propagate(graph, {"data": 2}, in_shardings={0: ("data",)}, strict=True)
    assert not result.redistributions
    assert [str(placement[0]) for placement in map(result.placements, range(2))] == ["Shard(0)", "Replicate()"]
    program = result.to_torch(device_mesh["data"])
    assert program.graph_module.graph.find_nodes(op="call_function", target=torch.ops.aten.mm.default)
    types = {op.name.split(".")[1]: op.operands[0].shape for op in program.local.program.walk() if op.operands}
    assert types["all_reduce"] == (4, 6)
    assert types["all_gather_into_tensor"] == (6, 4)


def test_a_collective_among_devices_of_the_mesh_is_an_error(graph: Any, device_mesh: Any) -> None:
    """It would combine shards of one tensor."""
    result = sdy.propagate(graph, {"data": 2, "model": 2}, in_shardings={0: ("data",)})
    with pytest.raises(sdy.OptionError, match=r"ranks \[0, 1\] of the mesh"):
        result.to_torch(device_mesh)


def test_overlapping_meshes_are_an_error_before_processes_wait_for_each_other(
    device_mesh: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A mesh of a part of the processes makes further groups only if all of its processes have equally many."""
    check_groups_can_be_made(device_mesh["data"])
    monkeypatch.setattr(dist, "all_reduce", lambda bounds, **kwargs: bounds[0].add_(2))
    check_groups_can_be_made(device_mesh)
    with pytest.raises(sdy.OptionError, match="can make no further one"):
        check_groups_can_be_made(device_mesh["data"])
