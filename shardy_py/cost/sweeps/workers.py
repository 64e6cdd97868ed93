"""Evaluation of schedules in this process, in several, or on a cluster, by joblib.

A process opens a program once and keeps it for the schedules that follow.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pickle import PicklingError
from threading import Lock
from typing import Any, Protocol

from attrs import evolve

from shardy_py.cost.sweeps.named_schedules import NamedSchedule
from shardy_py.cost.sweeps.outcomes import Outcome
from shardy_py.errors import Diagnostic, OptionError, WorkerError, require_library
from shardy_py.guards.error_texts import describe_error
from shardy_py.support.processes.serve import end_with
from shardy_py.support.processes.start import joblib_pool
from shardy_py.values import frozen

_ROUND = 32
"""The number of schedules per process whose keys are found before what is new among them is evaluated."""


class Evaluator(Protocol):
    """Evaluator of schedules; deterministic, and not to be called by two threads at once."""

    def key(self, schedule: NamedSchedule) -> str:
        """Return a text that is equal for schedules whose outcomes differ by the name and the schedule only."""
        ...

    def __call__(self, schedule: NamedSchedule) -> Outcome:
        """Return the outcome of a schedule."""
        ...


class Source(Protocol):
    """Source of an evaluator for other processes; it can be pickled."""

    @property
    def key(self) -> str:
        """A text that is equal for sources whose evaluators do the same."""
        ...

    def open(self) -> Evaluator:
        """Return the evaluator."""
        ...


def run_schedules(
    schedules: Sequence[NamedSchedule],
    *,
    evaluator: Evaluator,
    source: Callable[[], Source],
    jobs: int | None = None,
) -> Iterator[tuple[int, Outcome]]:
    """Yield the number of each schedule with its outcome, as they are done.

    Args:
        schedules: The schedules.
        evaluator: What evaluates them in this process.
        source: Makes what other processes get; only called where there are any.
        jobs: How many processes; -1 for one per core, None for what ``joblib.parallel_config`` says, which is one
            where it says nothing.

    Raises:
        OptionError: joblib is missing, its backend cannot do this, the number fits nothing, or what the processes need
            cannot be sent to them.
        WorkerError: a process was ended from outside.
    """
    if jobs == 0 or (jobs is not None and jobs < -1):
        raise OptionError(Diagnostic("invalid-jobs", f"jobs is {jobs}", hint="give 1, 2, ..., or -1 for all cores"))
    if jobs == 1 or not schedules or (jobs is None and not _is_configured()):
        yield from ((number, evaluator(schedule)) for number, schedule in enumerate(schedules))
        return
    require_joblib()
    from joblib import effective_n_jobs

    with ExitStack() as stack:
        try:
            run = stack.enter_context(joblib_pool(jobs))
        except ValueError:
            message, hint = "the backend of joblib gives no results one by one", "use loky, threading, dask or ray"
            raise OptionError(Diagnostic("backend", message, hint=hint)) from None
        stack.enter_context(_worker_errors())
        yield from _run_in_rounds(schedules, source(), run, _ROUND * effective_n_jobs(jobs))


def _run_in_rounds(
    schedules: Sequence[NamedSchedule], source: Source, run: Callable[[Iterable[Any]], Iterator[Any]], size: int
) -> Iterator[tuple[int, Outcome]]:
    """Yield the number of each schedule with its outcome; those with the same key are evaluated in one process only.

    Each round evaluates what was new in the round before, and finds the keys of some more schedules meanwhile.
    """
    from joblib import delayed

    sent = _Sent(source.key, source, os.getpid())
    known: dict[str, Outcome] = {}
    waiting: dict[str, list[int]] = {}
    new: list[int] = []
    for start in range(0, len(schedules) + size, size):
        tasks = [delayed(_evaluate)(sent, number, schedules[number]) for number in new]
        more = enumerate(schedules[start : start + size], start)
        tasks += [delayed(_find_key)(sent, number, schedule) for number, schedule in more]
        new = []
        for number, key, outcome in run(tasks):
            if outcome is not None:
                known[key] = outcome
            elif key not in known:
                waiting.setdefault(key, []).append(number)
                new += [number] if len(waiting[key]) == 1 else []
                continue
            for index in waiting.pop(key, [number]):
                yield index, evolve(known[key], name=schedules[index].name, schedule=schedules[index].text)


@contextmanager
def _worker_errors() -> Iterator[None]:
    """Turn the errors that a worker process is gone, or cannot be given the program, into ours.

    Raises:
        OptionError: the program or a plugin cannot be pickled.
        WorkerError: a process was ended from outside.
    """
    from joblib.externals.loky.process_executor import BrokenProcessPool

    try:
        yield
    except BrokenProcessPool as error:
        codes = re.search(r"exit codes? of the workers? (?:is|are) (.*)", str(error))
        message = f"a worker process was ended from outside{f': {codes[1]}' if codes else ''}"
        hint = "if memory ran out, use fewer jobs; a store keeps what is done, and the same call goes on from there"
        raise WorkerError(Diagnostic("worker-killed", message, hint=hint)) from None
    except PicklingError as error:
        # The cause is the text of a traceback, whose exception Python 3.14 follows by notes.
        reasons = re.findall(r"^[\w.]+: .*", str(error.__cause__), re.MULTILINE) or [describe_error(error)]
        message = f"what other processes need cannot be sent to them: {reasons[-1]}"
        hint = "give plugins as modules that can be imported there, or use one process (jobs=1)"
        raise OptionError(Diagnostic("not-sent", message, hint=hint)) from error


def require_joblib() -> None:
    """Check that joblib is installed.

    Raises:
        OptionError: it is not.
    """
    require_library("joblib", purpose="several processes need", extra="parallel")


def _is_configured() -> bool:
    """Return whether the caller has told joblib to use several workers, for which it was imported."""
    if "joblib" not in sys.modules:
        return False
    from joblib import effective_n_jobs

    return bool(effective_n_jobs(None) != 1)


@frozen
class _Sent:
    """Parts of a task that are the same for all schedules.

    Args:
        key: The key of the source.
        source: Where the evaluator comes from.
        sender: The id of the process that waits for the outcomes.
    """

    key: str
    source: Source
    sender: int


class _Opened:
    """The evaluator that this process used last; several threads of a worker take turns."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._key = ""
        self._evaluator: Evaluator | None = None

    @contextmanager
    def open(self, sent: _Sent) -> Iterator[Evaluator]:
        """Provide the evaluator of a source; open it where it is another one than before.

        From the first one on this process ends with its sender, where that is its parent.
        """
        end_with(sent.sender)
        with self._lock:
            if self._evaluator is None or self._key != sent.key:
                self._evaluator, self._key = sent.source.open(), sent.key
            yield self._evaluator


_OPENED = _Opened()


def _evaluate(sent: _Sent, number: int, schedule: NamedSchedule) -> tuple[int, str, Outcome]:
    """Evaluate a schedule in a worker; return its number, its key and its outcome."""
    with _OPENED.open(sent) as evaluator:
        return number, evaluator.key(schedule), evaluator(schedule)


def _find_key(sent: _Sent, number: int, schedule: NamedSchedule) -> tuple[int, str, None]:
    """Find the key of a schedule in a worker; return its number and the key."""
    with _OPENED.open(sent) as evaluator:
        return number, evaluator.key(schedule), None
