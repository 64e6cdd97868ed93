"""Processes for the tests that are forked of one in which all is imported, with a process group of gloo."""

from __future__ import annotations

import json
import multiprocessing
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist


def run_forked(run: Callable[[int, str], Any], count: int = 4) -> list[Any]:
    """Return what each process of a new group returns.

    Args:
        run: Takes the rank of the process, and a folder that all share; returns what JSON can hold.
        count: The number of processes.
    """
    # Forks have no threads of their parent.
    torch.set_num_threads(1)
    context = multiprocessing.get_context("fork")
    with tempfile.TemporaryDirectory() as folder:

        def one(rank: int) -> None:
            dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=count)
            Path(folder, str(rank)).write_text(json.dumps(run(rank, folder)))
            dist.destroy_process_group()

        started = [context.Process(target=one, args=(rank,)) for rank in range(count)]
        for process in started:
            process.start()
        for process in started:
            process.join()
        return [json.loads(Path(folder, str(rank)).read_text()) for rank in range(count)]
