"""Process groups: one for each set of ranks, and no question to processes outside of the mesh."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.distributed_c10d import _world
from torch.testing._internal.distributed.fake_pg import FakeStore

import shardy_py as sdy
from shardy_py.torch.parallel.process_groups import ProcessGroups

pytestmark = pytest.mark.torch
STARTED_TWICE = """
import gc
import torch.distributed as dist
from torch.testing._internal.distributed.fake_pg import FakeStore
from shardy_py.torch.parallel.process_groups import _KNOWN_GROUPS, ProcessGroups

def group_of_a_start():
    dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=4)
    return ProcessGroups(dist.device_mesh.init_device_mesh("cpu", (2, 2))).group([[0, 3], [1, 2]])

first = group_of_a_start()
assert len(_KNOWN_GROUPS) == 1
dist.destroy_process_group()
gc.collect()
print(len(_KNOWN_GROUPS), group_of_a_start() is first)
"""
"""Prints how many starts are remembered after the end of one, and whether the next one gets a group of the first."""


@pytest.fixture
def mesh() -> Iterator[Any]:
    """A device mesh of processes that start for one test."""
    dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=4)
    yield dist.device_mesh.init_device_mesh("cpu", (2, 2), mesh_dim_names=("data", "model"))
    dist.destroy_process_group()


def test_programs_share_the_group_of_equal_ranks(mesh: Any) -> None:
    """Of a mesh of another form, and in another order, too; the whole mesh has the group that there is."""
    line = dist.device_mesh.init_device_mesh("cpu", (4,), mesh_dim_names=("all",))
    before = len(_world.pg_names)
    first, second = ProcessGroups(mesh), ProcessGroups(line)
    assert first.group([[0, 3], [1, 2]]) is second.group([[2, 1], [3, 0]])
    assert first.group([[0, 1], [2, 3]]) is mesh.get_group("model")
    assert first.everyone is second.everyone is dist.group.WORLD
    # This process is in one of the two new groups.
    assert len(_world.pg_names) == before + 1


def test_groups_end_with_those_of_all_processes() -> None:
    """Programs of a later start do not get groups of an earlier one, which nothing holds any more."""
    # A process of its own, as other tests leave tracebacks and caches that hold groups.
    done = subprocess.run([sys.executable, "-c", STARTED_TWICE], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "0 False\n"), done.stderr


def test_states_of_generators_are_those_of_the_mesh(mesh: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes outside of the mesh may draw other numbers, and have not to answer."""
    asked: list[list[int]] = []
    gather = dist.all_gather

    def all_gather(tensors: Any, tensor: Any, group: Any = None) -> Any:
        asked.append(dist.get_process_group_ranks(group))
        for item in tensors:
            item.copy_(tensor)
        return gather(tensors, tensor, group=group)

    monkeypatch.setattr(dist, "all_gather", all_gather)
    model = nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.5))
    sdy.parallelize(model, mesh["data"], torch.ones(4, 8), {0: ("data",)})
    assert asked == [[0, 2]]
