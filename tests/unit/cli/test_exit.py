"""The end of the process of a command."""

from __future__ import annotations

import subprocess
import sys

import pytest

from shardy_py.support.gc_pause import FROZEN_BY_PYTHON

CODE = """
import atexit, gc, sys
atexit.register(lambda: print("frozen:", gc.get_freeze_count() > {limit}))
from shardy_py.cli.{module} import main
sys.argv = ["shardy", "--help"]
sys.exit(main())
"""


@pytest.mark.parametrize("module", ["main", "opt"])
def test_a_command_ends_without_a_look_for_garbage(module: str) -> None:
    """When Python begins to end, all objects are frozen, so that the collector has nothing to look at."""
    code = CODE.format(module=module, limit=FROZEN_BY_PYTHON)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "frozen: True"
    assert not done.stderr


def test_libraries_that_warn_of_leaks_are_cleared() -> None:
    """Triton prints what is left of it at the end, as the collector did not look at it."""
    code = "import sys\nsys.modules['triton'] = sys\n" + CODE.format(module="main", limit=FROZEN_BY_PYTHON)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "frozen: False"


def test_an_interrupted_command_has_the_exit_code_of_one() -> None:
    """Code 1 says that something differs, so an interrupt has another."""
    code = """
import signal, sys
import shardy_py.cost.commands.machines as command
command.machines.callback = lambda **options: signal.raise_signal(signal.SIGINT)
signal.signal(signal.SIGINT, signal.default_int_handler)
from shardy_py.cli.main import main
sys.argv = ["shardy", "machines"]
main()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "stopped\n")
