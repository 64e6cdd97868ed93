"""Processes and clusters, a progress bar and an orderly stop, for the commands that evaluate many schedules."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from typing import NoReturn

import click

from shardy_py.analysis.sweep.sweep import Progress
from shardy_py.analysis.sweep.workers import require_joblib
from shardy_py.cli.exit_codes import INTERRUPTED, TERMINATED
from shardy_py.cli.progress import progress_bar
from shardy_py.errors import Diagnostic, OptionError


@contextmanager
def joblib_backend(name: str | None, dask_address: str | None) -> Iterator[None]:
    """Let joblib use another backend than processes of this machine.

    Args:
        name: The backend; None for no other one.
        dask_address: Where the scheduler of a dask cluster is; without, a cluster is started on this machine.

    Raises:
        OptionError: there is no such backend, or it cannot be reached.
    """
    if dask_address is not None and name != "dask":
        raise OptionError(Diagnostic("option-conflict", "--dask-address is for --backend dask"))
    if name is None:
        yield
        return
    require_joblib()
    from joblib import parallel_config

    with ExitStack() as stack:
        try:
            if name == "dask":
                from dask.distributed import Client

                stack.enter_context(Client(dask_address, set_as_default=True))
            if name == "ray":
                from ray.util.joblib import register_ray

                register_ray()
            stack.enter_context(parallel_config(backend=name))
        except (ImportError, OSError, ValueError) as error:
            message = f"the backend {name!r} cannot be used: {error}"
            raise OptionError(
                Diagnostic("backend", message, hint="install it, check the address, or leave out --backend")
            ) from None
        yield


def default_jobs(backend: str | None) -> int | None:
    """Return the default number of processes: one per core, or that of the backend."""
    if backend is not None:
        return None
    return -1 if find_spec("joblib") is not None else 1


@contextmanager
def sweep_progress(label: str, *, total: int | None = None) -> Iterator[Progress]:
    """Show a bar with the time that is left; on a terminal only.

    Args:
        label: What is done.
        total: How many outcomes there will be, where that is known before the first.
    """
    with progress_bar(label, total=total) as show:
        yield lambda done, total, outcome: show(done, total, outcome.name)


@contextmanager
def stoppable(store: str | None) -> Iterator[None]:
    """End a command that the user or the system stops with a message on what is left of it, and its processes too."""
    try:
        with _terminable():
            yield
    except KeyboardInterrupt as error:
        rest = f"{store} has what is done, the same command goes on from there" if store else "nothing was saved"
        click.echo(f"stopped; {rest}", err=True)
        sys.exit(TERMINATED if isinstance(error, _Terminated) else INTERRUPTED)


class _Terminated(KeyboardInterrupt):
    """The process is asked to end, for example by a scheduler of jobs whose time is over."""


@contextmanager
def _terminable() -> Iterator[None]:
    """Raise what an interrupt raises where the process is asked to end, so that others it has started end with it."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, _terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _terminate(number: int, frame: object) -> NoReturn:
    raise _Terminated
