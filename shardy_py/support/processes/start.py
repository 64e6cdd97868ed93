"""The start of a process of Python that imports nothing from the current folder."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import IO

from shardy_py.support.processes.safe_path import SAFE_PATH

_ROOT = str(Path(__file__).resolve().parents[3])
_START = (
    "import sys; sys.path[:] = {path} or sys.path + [{root}]; "
    "from shardy_py.support.processes.serve import run; run({worker!a})"
)


def start_worker(worker: str, *, stderr: IO[bytes], python: str = "") -> subprocess.Popen[bytes]:
    """Start the process of a worker, with pipes to its standard input and from its standard output.

    It imports from where this process does, so that it runs the same code, ``PYTHONPATH`` included, but nothing from
    the current folder.

    Args:
        worker: The module whose function ``main`` it runs.
        stderr: The file that gets what it writes to standard error.
        python: Another interpreter than that of this process.

    Raises:
        OSError: it cannot be started.
    """
    path = [] if python else search_path()
    code = _START.format(path=ascii(path), root=ascii(_ROOT), worker=worker)
    return subprocess.Popen(
        [python or sys.executable, *_flags(), "-P", "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=stderr,
        env={**os.environ, SAFE_PATH: "1"},
    )


def search_path() -> list[str]:
    """Return the folders that this process imports from, without the current one unless ``PYTHONPATH`` names it."""
    asked = {os.path.realpath(item) for item in os.environ.get("PYTHONPATH", "").split(os.pathsep) if item}
    here = os.path.realpath(os.curdir)
    path = [item for item in map(str, sys.path) if item and (os.path.realpath(item) != here or here in asked)]
    # A checkout that was imported as the current folder is still needed, behind all else.
    return path if _ROOT in path else [*path, _ROOT]


def _flags() -> list[str]:
    """Return the flags of this interpreter that say what Python may look at when it starts."""
    if sys.flags.isolated:
        return ["-I"]
    flags = {"-E": sys.flags.ignore_environment, "-s": sys.flags.no_user_site, "-S": sys.flags.no_site}
    return [flag for flag, is_set in flags.items() if is_set]
