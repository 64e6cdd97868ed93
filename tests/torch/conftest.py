"""Tests that need PyTorch: without it they are left out, with a line that says so."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import pytest

_MISSING = find_spec("torch") is None
collect_ignore_glob = ["test_*.py"] if _MISSING else []


def pytest_report_header() -> str | None:
    """Say why the tests of this folder are left out."""
    return "tests/torch is left out: PyTorch is not installed" if _MISSING else None


def pytest_configure(config: pytest.Config) -> None:
    """Leave out what PyTorch says about itself, so that the warnings that are left are those of this package."""
    for line in (
        r"ignore:`isinstance\(treespec, LeafSpec\)` is deprecated:FutureWarning",
        r"ignore:`torch.jit.script_method` is deprecated:DeprecationWarning",
    ):
        config.addinivalue_line("filterwarnings", line)


@pytest.fixture(autouse=True)
def _seeded() -> None:
    import torch

    # Workers share the cores already; threads that wait for each other take longer than the work.
    torch.set_num_threads(1)
    torch.manual_seed(0)


@pytest.fixture(scope="module")
def mesh() -> Iterator[Any]:
    """A device mesh of four processes, of which this is the first and the others do not answer."""
    import torch.distributed as dist
    from torch.testing._internal.distributed.fake_pg import FakeStore

    dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=4)
    yield dist.device_mesh.init_device_mesh("cpu", (2, 2), mesh_dim_names=("data", "model"))
    dist.destroy_process_group()
