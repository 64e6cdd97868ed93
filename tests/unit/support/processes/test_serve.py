"""Processes whose parent ends."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from shardy_py.support.processes import serve

CHILD = "from shardy_py.support.processes.serve import end_with_parent; end_with_parent(); print('up', flush=True); {}"
PARENT = """
import os, signal, subprocess, sys
child = subprocess.Popen([sys.executable, "-c", {child!r}], stdout=subprocess.PIPE)
print(child.stdout.readline().decode(), end="", flush=True)
{end}
"""
SLEEP = "import time; time.sleep(300); print('late')"


@pytest.mark.skipif(os.name == "nt", reason="there a process does not learn of the end of its parent")
@pytest.mark.parametrize("end", ["os.kill(os.getpid(), signal.SIGKILL)", "os._exit(0)"])
def test_a_child_ends_with_its_parent(end: str) -> None:
    """Its standard error is closed, which it shares with the test, although it would go on for minutes."""
    code = PARENT.format(child=CHILD.format(SLEEP), end=end)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout, done.stderr) == ("up\n", "")


def test_a_child_of_a_living_parent_goes_on() -> None:
    """It is looked at several times, and the child ends by itself."""
    wait = (
        "import shardy_py.support.processes.serve as serve, time; time.sleep(2.5 * serve._POLL_SECONDS); print('done')"
    )
    done = subprocess.run([sys.executable, "-c", CHILD.format(wait)], capture_output=True, text=True, check=True)
    assert done.stdout == "up\ndone\n"


@pytest.mark.parametrize(("is_parent", "expected"), [(True, 1), (False, 0)])
def test_a_process_ends_with_its_own_parent_only(
    is_parent: bool, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One watch serves any number of requests; a process that somebody else started has none."""
    watches: list[int] = []
    monkeypatch.setattr(serve, "_watch", watches.append)
    serve.end_with.cache_clear()
    for _ in range(3):
        serve.end_with(os.getppid() if is_parent else os.getpid())
    serve.end_with.cache_clear()
    assert len(watches) == expected
