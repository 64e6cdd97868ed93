"""Start processes of Python that import nothing from the current folder: workers, and pools of joblib and dask.

In the current folder a file called ``random.py`` would replace the module of that name.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    import subprocess
    from concurrent.futures import Executor

_ROOT = str(Path(__file__).resolve().parents[3])
_START = (
    "import sys; sys.path[:] = {path} or sys.path + [{root}]; "
    "from shardy_py.support.processes.serve import run; run({worker!a})"
)


def start_worker(worker: str, *, stderr: IO[bytes], python: str = "") -> subprocess.Popen[bytes]:
    """Start the process of a worker, with pipes to its standard input and from its standard output.

    It imports from where this process does, so that it runs the same code, ``PYTHONPATH`` included, but nothing from
    the current folder unless the user asked for it; see `search_path`.

    Args:
        worker: The module whose function ``main`` it runs.
        stderr: The file that gets what it writes to standard error.
        python: Another interpreter than that of this process.

    Raises:
        OSError: it cannot be started.
    """
    import subprocess

    path = [] if python else search_path()
    code = _START.format(path=ascii(path), root=ascii(_ROOT), worker=worker)
    return subprocess.Popen(
        [python or sys.executable, *_flags(), "-P", "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=stderr,
        env={**os.environ, SAFE_PATH: "1"},
    )


def messages_of(program: str, arguments: Sequence[str], text: str, *, seconds: float) -> str | None:
    """Return what a program that is not Python writes to standard error; None where it fails or takes too long.

    Args:
        program: Its path.
        arguments: Its arguments.
        text: Its standard input.
        seconds: The time limit.
    """
    written = _written(program, arguments, text, seconds)
    return None if written is None else written[1]


def output_of(program: str, arguments: Sequence[str], text: str, *, seconds: float) -> str | None:
    """Return what such a program writes to standard output; None where it fails or takes too long."""
    written = _written(program, arguments, text, seconds)
    return None if written is None else written[0]


def _written(program: str, arguments: Sequence[str], text: str, seconds: float) -> tuple[str, str] | None:
    """Return what a program writes to standard output and to standard error."""
    import subprocess

    try:
        done = subprocess.run(
            [program, *arguments], input=text, capture_output=True, text=True, check=False, timeout=seconds
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return None if done.returncode else (done.stdout, done.stderr)


def search_path() -> list[str]:
    """Return the folders that this process imports from, without the current one unless the user asked for it.

    ``PYTHONPATH`` asks for it, and so does a distribution that is installed from it in editable mode: its entry stands
    behind the standard library, before which Python itself puts the current folder.
    """
    asked = {os.path.realpath(item) for item in os.environ.get("PYTHONPATH", "").split(os.pathsep) if item}
    here, items = os.path.realpath(os.curdir), list(map(str, sys.path))
    library = os.path.dirname(os.__file__)
    installed = items[items.index(library) :] if library in items else []
    asked.update(map(os.path.realpath, filter(None, installed)))
    path = [item for item in items if item and (os.path.realpath(item) != here or here in asked)]
    # A checkout that was imported as the current folder is still needed, behind all else.
    return path if _ROOT in path else [*path, _ROOT]


def _flags() -> list[str]:
    """Return the flags of this interpreter that restrict what Python reads at its start."""
    if sys.flags.isolated:
        return ["-I"]
    flags = {"-E": sys.flags.ignore_environment, "-s": sys.flags.no_user_site, "-S": sys.flags.no_site}
    return [flag for flag, is_set in flags.items() if is_set]


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


SAFE_PATH = "PYTHONSAFEPATH"


@contextmanager
def no_current_folder() -> Iterator[None]:
    """Keep the current folder off the path of each Python that a library starts in a block, such as joblib's."""
    before = os.environ.get(SAFE_PATH)
    os.environ[SAFE_PATH] = "1"
    try:
        yield
    finally:
        if before is None:
            os.environ.pop(SAFE_PATH, None)
        else:
            os.environ[SAFE_PATH] = before
