"""Pools of processes: joblib's, those of a dask cluster, and those of the random comparison with the reference."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from typing import Any

from shardy_py.processes.safe_path import no_current_folder


@contextmanager
def joblib_pool(jobs: int | None) -> Iterator[Any]:
    """Provide a ``joblib.Parallel`` that yields results as they are done, from processes without the current folder.

    Args:
        jobs: How many processes; None for what ``joblib.parallel_config`` says.

    Raises:
        ValueError: the backend of joblib gives no results one by one.
    """
    from joblib import Parallel

    with no_current_folder():
        yield Parallel(n_jobs=jobs, return_as="generator_unordered", batch_size=1)


@contextmanager
def dask_client(address: str | None) -> Iterator[None]:
    """Connect joblib to a dask cluster; one on this machine where there is no address."""
    from dask.distributed import Client

    with no_current_folder(), Client(address, set_as_default=True):
        yield


@contextmanager
def spawned_pool(jobs: int) -> Iterator[Executor]:
    """Provide a pool of new processes."""
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    with no_current_folder(), ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        yield pool
