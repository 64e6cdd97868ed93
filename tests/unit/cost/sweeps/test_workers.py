"""Schedules in several processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from threading import Lock
from typing import Any

import pytest
from attrs import frozen

from shardy_py.cost.sweeps.named_schedules import NamedSchedule
from shardy_py.cost.sweeps.outcomes import Outcome, RefusedSchedule
from shardy_py.cost.sweeps.workers import run_schedules
from shardy_py.errors import Diagnostic, OptionError, ShardyError, WorkerError
from shardy_py.schedule.builtin import EVERYTHING
from shardy_py.schedule.model import Schedule

SCHEDULES = tuple(NamedSchedule(f"s{i}", Schedule((EVERYTHING,))) for i in range(6))


@frozen
class Source:
    """A source whose evaluator tells its process; opening leaves a file per process."""

    folder: str
    error: str = ""

    @property
    def key(self) -> str:
        return f"{self.folder}{self.error}"

    def open(self) -> Evaluator:
        if self.error:
            raise OptionError(Diagnostic("broken", self.error, "file:1"))
        with open(Path(self.folder) / str(os.getpid()), "a") as stream:
            stream.write("opened\n")
        return Evaluator()


class Evaluator:
    """Refuses every schedule, naming the process; the same way for those whose names begin alike."""

    def key(self, schedule: NamedSchedule) -> str:
        return schedule.name.partition("-")[0]

    def __call__(self, schedule: NamedSchedule) -> Outcome:
        return RefusedSchedule(schedule.name, schedule.text, (str(os.getpid()),))


def run(source: Source, jobs: int | None, schedules: tuple[NamedSchedule, ...] = SCHEDULES) -> dict[int, Outcome]:
    """Return the outcomes by number."""
    return dict(run_schedules(schedules, evaluator=Evaluator(), source=lambda: source, jobs=jobs))


@pytest.mark.parametrize("jobs", [1, None])
def test_one_process_is_this_one(tmp_path: Path, jobs: int | None) -> None:
    """Without more than one process nothing is sent anywhere; outcomes come in order."""
    source = Source(str(tmp_path))
    actual = list(run_schedules(SCHEDULES, evaluator=Evaluator(), source=lambda: source, jobs=jobs))
    assert [number for number, _ in actual] == list(range(6))
    assert {outcome.problems for _, outcome in actual} == {(str(os.getpid()),)}  # type: ignore[union-attr]
    assert not list(tmp_path.iterdir())


def test_each_process_opens_the_source_once(tmp_path: Path) -> None:
    """Several schedules in a process share one evaluator, and every schedule has its own outcome."""
    pytest.importorskip("joblib")
    actual = run(Source(str(tmp_path)), 2)
    assert sorted(actual) == list(range(6))
    assert all(actual[number].name == f"s{number}" for number in actual)
    files = list(tmp_path.iterdir())
    assert {outcome.problems[0] for outcome in actual.values()} <= {item.name for item in files}
    assert str(os.getpid()) not in {item.name for item in files}
    assert {item.read_text() for item in files} == {"opened\n"}


def test_schedules_with_the_same_key_are_evaluated_in_one_process(tmp_path: Path) -> None:
    """Two processes evaluate each of three keys once; each of 200 schedules gets the outcome under its own name."""
    pytest.importorskip("joblib")
    schedules = tuple(NamedSchedule(f"s{i % 3}-{i}", Schedule((EVERYTHING,))) for i in range(200))
    actual = run(Source(str(tmp_path)), 2, schedules)
    assert [actual[number].name for number in range(200)] == [item.name for item in schedules]
    for first in range(3):
        assert len({actual[number].problems for number in range(first, 200, 3)}) == 1  # type: ignore[union-attr]


def test_errors_of_other_processes_keep_their_diagnostics(tmp_path: Path) -> None:
    """What cannot be opened in a process is the same error here."""
    pytest.importorskip("joblib")
    with pytest.raises(ShardyError) as caught:
        run(Source(str(tmp_path), "it is broken"), 2)
    assert caught.value.diagnostics == (Diagnostic("broken", "it is broken", "file:1"),)


def test_the_backend_of_the_caller_is_used(tmp_path: Path) -> None:
    """Inside joblib's own configuration its workers are used, here threads of this process."""
    joblib = pytest.importorskip("joblib")
    with joblib.parallel_config(backend="threading", n_jobs=2):
        actual = run(Source(str(tmp_path)), None)
    assert sorted(actual) == list(range(6))
    assert [item.name for item in tmp_path.iterdir()] == [str(os.getpid())]


def test_a_backend_without_single_results_is_an_error(tmp_path: Path) -> None:
    """Results are wanted as they come, which not all backends can do."""
    joblib = pytest.importorskip("joblib")
    with joblib.parallel_config(backend="multiprocessing", n_jobs=2), pytest.raises(OptionError, match="one by one"):
        run(Source(str(tmp_path)), None)


@frozen
class LockedSource:
    """A source that stays in its process."""

    lock: Any
    key: str = "locked"

    def open(self) -> Evaluator:
        return Evaluator()


def test_what_cannot_be_sent_to_a_process_is_an_error() -> None:
    """A lock, as in a plugin, has no meaning elsewhere; the message says so and what to do."""
    pytest.importorskip("joblib")
    with pytest.raises(OptionError, match=r"cannot be sent to them: TypeError: cannot pickle '_thread.lock'") as error:
        list(run_schedules(SCHEDULES, evaluator=Evaluator(), source=lambda: LockedSource(Lock()), jobs=2))
    assert "jobs=1" in error.value.diagnostics[0].hint


@pytest.mark.parametrize("jobs", [0, -2])
def test_impossible_numbers_of_processes(tmp_path: Path, jobs: int) -> None:
    """There are one, several, or as many as cores."""
    with pytest.raises(OptionError, match="jobs is"):
        run(Source(str(tmp_path)), jobs)


def test_nothing_to_do_needs_no_process(tmp_path: Path) -> None:
    """Without schedules nothing is opened."""
    assert run(Source(str(tmp_path)), 2, ()) == {}
    assert not list(tmp_path.iterdir())


class Killed:
    """Ends its process as a lack of memory would."""

    def key(self, schedule: NamedSchedule) -> str:
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError

    def __call__(self, schedule: NamedSchedule) -> Outcome:
        raise AssertionError


@frozen
class KilledSource:
    """The source of it."""

    key: str = "killed"

    def open(self) -> Killed:
        return Killed()


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such signals")
def test_a_killed_worker_is_an_error() -> None:
    """A process that the system ends is a message that says what to do, not a traceback of the library."""
    pytest.importorskip("joblib")
    with pytest.raises(WorkerError, match="ended from outside") as error:
        list(run_schedules(SCHEDULES, evaluator=Evaluator(), source=KilledSource, jobs=2))
    assert "store" in error.value.diagnostics[0].hint


class KillsSender:
    """Ends the process that waits for the outcome, and would go on for minutes."""

    def key(self, schedule: NamedSchedule) -> str:
        os.kill(os.getppid(), signal.SIGKILL)
        time.sleep(300)
        raise AssertionError

    def __call__(self, schedule: NamedSchedule) -> Outcome:
        raise AssertionError


@frozen
class KillsSenderSource:
    """The source of it."""

    key: str = "kills-sender"

    def open(self) -> KillsSender:
        return KillsSender()


SWEEP = """
from tests.unit.cost.sweeps.test_workers import SCHEDULES, Evaluator, KillsSenderSource
from shardy_py.cost.sweeps.workers import run_schedules

list(run_schedules(SCHEDULES, evaluator=Evaluator(), source=KillsSenderSource, jobs=2))
"""


@pytest.mark.skipif(os.name == "nt", reason="there a process does not learn of the end of its parent")
def test_workers_end_with_a_killed_sweep() -> None:
    """No process holds the output of a sweep that the system ended, so that who reads it gets to the end."""
    pytest.importorskip("joblib")
    done = subprocess.run([sys.executable, "-c", SWEEP], capture_output=True, timeout=60, check=False)
    assert done.returncode == -signal.SIGKILL
