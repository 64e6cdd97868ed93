"""The entry point of ``shardy``; everything else is imported when it is needed."""

from __future__ import annotations

import atexit
import gc
import os
import signal
import sys
from contextlib import suppress
from importlib.util import find_spec

from shardy_py.support.processes.start import SAFE_PATH
from shardy_py.support.termination import interrupt_between_imports

INTERRUPTED = 130
"""By the user, with Ctrl-C."""
_SIGNALED = 128


def exit_code_of(number: int) -> int:
    """Return the exit code of a command that a signal stops.

    >>> exit_code_of(15)
    143
    """
    return _SIGNALED + number


_NEEDED = ("click", "rich")


def main() -> None:
    """Run the command line; say what to install where its libraries are missing."""
    missing = [name for name in _NEEDED if find_spec(name) is None]
    if missing:
        sys.exit(_refuse(missing))
    try:
        begin_process()
        # Modules and rules live as long as the process: `make_registry` turns the collector on when all are there.
        gc.disable()
        from shardy_py.cli.app import shardy
        from shardy_py.cli.streams import standard_streams

        with standard_streams():
            shardy(prog_name="shardy")
    except KeyboardInterrupt:
        sys.exit(report_interrupt())
    finally:
        gc.enable()
        end_process()


def begin_process() -> None:
    """Prepare a process that runs one command, and nothing else."""
    interrupt_between_imports()
    # Of whatever library starts another Python: nothing of the current folder runs in it.
    os.environ[SAFE_PATH] = "1"
    # The process ends without looking for garbage in all that it has, a sixth of a short command. Triton, which comes
    # with PyTorch, warns of all its types that are left.
    atexit.register(lambda: None if "triton" in sys.modules else gc.freeze())


def end_process() -> None:
    """Let an interrupt end the process at once, now that the command is done: Python would print a traceback."""
    if callable(signal.getsignal(signal.SIGINT)):
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def report_interrupt() -> int:
    """Say that the user has stopped the command, and return its exit code."""
    with suppress(OSError, AttributeError):  # standard error may be closed
        print("stopped", file=sys.stderr, flush=True)
    return INTERRUPTED


def _refuse(missing: list[str]) -> int:
    names = " and ".join(missing)
    print(f"shardy: error: the command line needs {names}: pip install 'shardy_py[cli]'", file=sys.stderr)
    return 2


if __name__ == "__main__":
    main()
