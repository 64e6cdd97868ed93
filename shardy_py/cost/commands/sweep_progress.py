"""Processes and clusters, a progress bar and an orderly stop, for the commands that evaluate many schedules."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from importlib.util import find_spec

import click

from shardy_py.cli.main import INTERRUPTED, exit_code_of
from shardy_py.cli.progress import progress_bar
from shardy_py.cost.sweeps.sweep import Progress
from shardy_py.cost.sweeps.workers import require_joblib
from shardy_py.errors import Diagnostic, OptionError
from shardy_py.support.processes.start import dask_client
from shardy_py.support.termination import Terminated, raise_on_termination


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
                stack.enter_context(dask_client(dask_address))
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
        with raise_on_termination():
            yield
    except KeyboardInterrupt as error:
        rest = f"{store} has what is done, the same command goes on from there" if store else "nothing was saved"
        with suppress(OSError):  # the terminal may be gone
            click.echo(f"stopped; {rest}", err=True)
        sys.exit(exit_code_of(error.number) if isinstance(error, Terminated) else INTERRUPTED)
