"""Processes that answer requests: their paths, their limits and their ends."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from shardy_py.support.processes.child import (
    Child,
    ChildDied,
    ChildTimeout,
    ask_once,
    describe_crash,
    find_cause,
    name_exit,
)
from shardy_py.support.processes.start import search_path

WORKER = "tests.unit.support.processes.obedient_worker"
posix = pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")


def test_one_process_answers_many_requests() -> None:
    """It keeps what it has, reports steps in order, and what it prints is no answer."""
    steps: list[tuple[int, int | None, str]] = []
    with Child(WORKER) as child:
        code = b"import os\nprint('noise', flush=True)\nshow(1, 2, 'one')\nshow(2, None)\nanswer = b'%d' % os.getpid()"
        first = child.ask(code, seconds=60, show=lambda *step: steps.append(step))
        assert child.ask(code, seconds=60) == first == b"%d" % child.pid
        assert child.take_stderr() == "noise\nnoise\n"
    assert steps == [(1, 2, "one"), (2, None, "")]


def test_large_messages_come_through() -> None:
    """Neither side waits for the other one to read while it writes."""
    size = 3_000_000
    assert ask_once(WORKER, b"answer = b'%s' * 2" % (b"x" * size), seconds=60) == b"x" * size * 2


@posix
def test_a_signal_is_named() -> None:
    """Where a library ends the process, the error has the signal and the line that says why."""
    stderr = "note\nF1 a.cc:1] Check failed: x > 0 of a long line\nstack\n"
    code = f"import os, sys\nsys.stderr.write({stderr!r})\nsys.stderr.flush()\nos.abort()".encode()
    with pytest.raises(ChildDied) as caught:
        ask_once(WORKER, code, seconds=60)
    assert str(caught.value) == "the process died (SIGABRT): F1 a.cc:1] Check failed: x > 0 of a long line"


def test_an_exception_is_named() -> None:
    """An exception ends the process; its last line is the reason, as a whole."""
    message = "a" * 500
    with pytest.raises(ChildDied) as caught:
        ask_once(WORKER, b"raise ValueError('%s')" % message.encode(), seconds=60)
    assert str(caught.value) == f"the process died (exit code 1): ValueError: {message}"


def test_a_process_has_a_time_limit() -> None:
    """It is ended, and does not delay its parent."""
    begin = time.monotonic()
    with pytest.raises(ChildTimeout, match=r"no answer within 0\.5 seconds"):
        ask_once(WORKER, b"import time; time.sleep(300)", seconds=0.5)
    assert time.monotonic() - begin < 200


def test_an_interpreter_that_is_not_there_is_an_error() -> None:
    """The system's error comes out."""
    with pytest.raises(OSError, match="No such file"):
        Child(WORKER, python=os.path.join(os.sep, "nowhere", "python"))


PARENT = """
import os, signal, sys
from shardy_py.support.processes.child import Child
# What starts the tests in the background may have these ignored.
signal.signal(signal.SIGHUP, signal.SIG_DFL)
signal.signal(signal.SIGINT, signal.default_int_handler)
child = Child({worker!r})
print(child.pid, flush=True)
child.ask(b"import time; time.sleep(300)", seconds=300)
"""


@posix
@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP", "SIGINT", "SIGKILL"])
def test_a_process_ends_with_its_parent(name: str, tmp_path: Path) -> None:
    """Whatever ends the parent, the child is gone soon, and no file is left."""
    import signal

    code = PARENT.format(worker=WORKER)
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment
    ) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        time.sleep(0.5)
        parent.send_signal(getattr(signal, name))
        parent.wait(timeout=60)
        for _ in range(600):
            if not _is_alive(child):
                break
            time.sleep(0.1)
        assert not _is_alive(child)
    assert os.listdir(tmp_path) == []


def _is_alive(process: int) -> bool:
    """Return whether a process runs; one that has ended and that nobody has asked for does not."""
    try:
        status = Path(f"/proc/{process}/status").read_text() if Path("/proc").is_dir() else ""
        os.kill(process, 0)
    except (OSError, ProcessLookupError):
        return False
    return "State:\tZ" not in status


def test_nothing_of_the_current_folder_is_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files called after modules of Python lie beside the program; neither the path nor the child knows them."""
    for name in ("random", "types", "json", "queue", "struct", "signal"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('a file of the current folder ran')\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", ["", str(tmp_path), *sys.path])
    answer = ask_once(WORKER, b"import random, queue, sys; answer = repr(sys.path).encode()", seconds=60)
    assert str(tmp_path) not in answer.decode()
    assert "''" not in answer.decode()


def test_the_path_of_the_user_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``PYTHONPATH`` is asked for, also where it names the current folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    assert str(tmp_path) not in search_path()
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert search_path()[0] == str(tmp_path)
    (tmp_path / "users_module.py").write_text("NAME = b'of the user'\n")
    assert ask_once(WORKER, b"import users_module; answer = users_module.NAME", seconds=60) == b"of the user"


def test_a_package_that_is_installed_from_the_current_folder_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The entry of an installation in editable mode stands behind the standard library."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
    assert str(tmp_path) in search_path()


@pytest.mark.parametrize(
    ("stderr", "expected"),
    [
        ("", ""),
        ("a note\nLLVM ERROR: out of memory\nStack dump:\n0. Program", "LLVM ERROR: out of memory"),
        ("Traceback (most recent call last):\n  File\nKeyError: 'a'\n", "KeyError: 'a'"),
        ("Traceback (most recent call last):\n  File\nMemoryError\n", "MemoryError"),
        (
            "KeyError: 1\nDuring handling\njax.errors.JaxRuntimeError: INTERNAL: x\n-----\n",
            "jax.errors.JaxRuntimeError: INTERNAL: x",
        ),
        ("first\nlast\n\n", "last"),
    ],
)
def test_the_cause_is_a_whole_line(stderr: str, expected: str) -> None:
    """A failed check comes before an exception, an exception before the last line."""
    assert find_cause(stderr) == expected


def test_lines_without_an_end_are_cut() -> None:
    """Some libraries print the whole module."""
    assert len(find_cause("Check failed: " + "x" * 100_000)) < 2100


def test_ends_have_names() -> None:
    """A signal is called by its name where it has one."""
    assert (name_exit(-9), name_exit(-1000), name_exit(3)) == ("SIGKILL", "signal 1000", "exit code 3")
    assert describe_crash(1, "") == "the process died (exit code 1)"
