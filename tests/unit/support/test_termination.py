"""Signals that come while something is begun, or while a library cannot take them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from importlib import import_module
from pathlib import Path

import pytest

from shardy_py.support import termination
from shardy_py.support.termination import (
    Terminated,
    interrupt_between_imports,
    raise_on_termination,
    unwind_on_termination,
)

pytestmark = pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")


TERMINATED = """
import signal, sys
from shardy_py.support.termination import Terminated, raise_on_termination
try:
    with raise_on_termination():
        import slow_module
except Terminated as error:
    print("interrupted", "slow_module" in sys.modules and slow_module.is_complete)
"""
IMPORTING = """
import signal, sys
from shardy_py.support.termination import interrupt_between_imports
interrupt_between_imports()
try:
    import slow_module
    import time
    time.sleep(60)
except KeyboardInterrupt:
    print("interrupted", "slow_module" in sys.modules and slow_module.is_complete)
"""


@pytest.mark.parametrize(("code", "name"), [(IMPORTING, "SIGINT"), (TERMINATED, "SIGTERM")])
def test_a_signal_waits_for_the_end_of_an_import(code: str, name: str, tmp_path: Path) -> None:
    """The module is complete when it comes, although it asks for nothing itself."""
    (tmp_path / "slow_module.py").write_text(
        f"import signal, time\nsignal.raise_signal(signal.{name})\ntime.sleep(0.2)\nis_complete = True\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=50, check=False
    )
    assert (done.stdout, done.stderr) == ("interrupted True\n", "")


def test_an_import_without_an_end_is_interrupted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It does not hold the user for ever."""
    monkeypatch.setattr(termination, "_LONGEST_IMPORT", 0.1)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "endless_module.py").write_text(
        "import signal, time\nsignal.raise_signal(signal.SIGINT)\ntime.sleep(60)\n"
    )
    before = signal.getsignal(signal.SIGALRM)
    try:
        termination.interrupt_between_imports()
        with pytest.raises(KeyboardInterrupt):
            import_module("endless_module")
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_is_raised_in_a_block(number: signal.Signals) -> None:
    """A second one is ignored while the block is left, and the handlers are as before."""
    steps: list[str] = []

    def work() -> None:
        with raise_on_termination():
            try:
                signal.raise_signal(number)
            finally:
                signal.raise_signal(signal.SIGTERM)
                steps.append("undone")

    with pytest.raises(Terminated) as caught:
        work()
    assert (caught.value.number, steps) == (number, ["undone"])
    assert signal.getsignal(number) is signal.SIG_DFL


def test_handlers_of_others_stay() -> None:
    """Whoever handles a signal goes on to do so."""
    seen: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, frame: seen.append(number))
    try:
        with unwind_on_termination():
            signal.raise_signal(signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert seen == [signal.SIGTERM]


def test_threads_change_no_handlers() -> None:
    """Python lets the main thread handle signals only."""
    handlers: list[object] = []

    def look() -> None:
        with unwind_on_termination():
            interrupt_between_imports()
            handlers.append((signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)))

    before = (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT))
    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert handlers == [before]


def test_the_signal_ends_the_process_after_the_block() -> None:
    """The parent sees which signal it was, and what the block has undone is undone."""
    code = """
import signal
from shardy_py.support.termination import unwind_on_termination
with unwind_on_termination():
    try:
        with unwind_on_termination():
            signal.raise_signal(signal.SIGTERM)
    finally:
        print("undone", flush=True)
print("late")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGTERM, "undone\n", "")
