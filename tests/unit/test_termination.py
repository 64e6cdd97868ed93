"""Signals that come while something is begun, or while a library cannot take them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading

import pytest

from shardy_py.termination import Terminated, hold_interrupts, raise_on_termination, unwind_on_termination

pytestmark = pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")


def test_an_interrupt_waits_for_the_end_of_a_block() -> None:
    """What a block has begun is complete, and the interrupt comes after it."""
    steps: list[str] = []

    def work() -> None:
        with hold_interrupts():
            signal.raise_signal(signal.SIGINT)
            steps.append("complete")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert steps == ["complete"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


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
        with unwind_on_termination(), hold_interrupts():
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
from shardy_py.termination import unwind_on_termination
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
