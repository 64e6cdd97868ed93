"""Pools of processes: joblib's, those of a dask cluster, and those of the random comparison with the reference."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor
from contextlib import ExitStack, contextmanager
from typing import Any

from shardy_py.support.processes.safe_path import no_current_folder


@contextmanager
def joblib_pool(jobs: int | None) -> Iterator[Callable[[Iterable[Any]], Iterator[Any]]]:
    """Provide a function that runs tasks of joblib, and yields their results as they are done.

    Its processes have no current folder on their path, and leave the interrupts of a terminal to this one.

    Args:
        jobs: How many processes; None for what ``joblib.parallel_config`` says.

    Raises:
        ValueError: the backend of joblib gives no results one by one.
    """
    from joblib import Parallel

    run = Parallel(n_jobs=jobs, return_as="generator_unordered", batch_size=1)

    def start(tasks: Iterable[Any]) -> Iterator[Any]:
        with _blocked_interrupts():
            results: Iterator[Any] = run(tasks)
        return results

    with no_current_folder():
        yield start


@contextmanager
def dask_client(address: str | None) -> Iterator[None]:
    """Connect joblib to a dask cluster; one on this machine where there is no address."""
    from dask.distributed import Client

    with no_current_folder(), ExitStack() as stack:
        with _blocked_interrupts():
            stack.enter_context(Client(address, set_as_default=True))
        yield


@contextmanager
def spawned_pool(jobs: int) -> Iterator[Executor]:
    """Provide a pool of new processes."""
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    with no_current_folder(), ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        yield pool


@contextmanager
def _blocked_interrupts() -> Iterator[None]:
    """Start processes and threads that get no interrupts; this thread gets one that came meanwhile."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
