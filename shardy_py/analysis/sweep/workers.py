"""Evaluation of schedules in this process, in several, or on a cluster, by joblib.

A process opens a program once and keeps it for the schedules that follow.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from threading import Lock
from typing import Protocol

from shardy_py.analysis.sweep.named_schedules import NamedSchedule
from shardy_py.analysis.sweep.outcomes import Outcome
from shardy_py.errors import Diagnostic, OptionError, WorkerError, require_library

Evaluator = Callable[[NamedSchedule], Outcome]
"""Function from a schedule to its outcome; deterministic, and not to be called by two threads at once."""


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
        OptionError: joblib is missing, or the number fits nothing.
        WorkerError: a process was ended from outside.
    """
    if jobs == 0 or (jobs is not None and jobs < -1):
        raise OptionError(Diagnostic("invalid-jobs", f"jobs is {jobs}", hint="give 1, 2, ..., or -1 for all cores"))
    if jobs == 1 or not schedules or (jobs is None and not _is_configured()):
        yield from ((number, evaluator(schedule)) for number, schedule in enumerate(schedules))
        return
    require_joblib()
    from joblib import Parallel, delayed

    sent = source()
    key = sent.key
    run = Parallel(n_jobs=jobs, return_as="generator_unordered", batch_size=1)
    with _lost_workers():
        yield from run(delayed(_evaluate)(key, sent, number, schedule) for number, schedule in enumerate(schedules))


@contextmanager
def _lost_workers() -> Iterator[None]:
    """Turn the error that a worker process is gone into one of ours.

    Raises:
        WorkerError: it is.
    """
    from joblib.externals.loky.process_executor import BrokenProcessPool

    try:
        yield
    except BrokenProcessPool as error:
        codes = re.search(r"exit codes? of the workers? (?:is|are) (.*)", str(error))
        message = f"a worker process was ended from outside{f': {codes[1]}' if codes else ''}"
        hint = "if memory ran out, use fewer jobs; a store keeps what is done, and the same call goes on from there"
        raise WorkerError(Diagnostic("worker-killed", message, hint=hint)) from None


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


class _Opened:
    """The evaluator that this process used last; several threads of a worker take turns."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._key = ""
        self._evaluator: Evaluator | None = None

    def evaluate(self, key: str, source: Source, schedule: NamedSchedule) -> Outcome:
        """Evaluate a schedule; open the evaluator where it is another one than before."""
        with self._lock:
            if self._evaluator is None or self._key != key:
                self._evaluator, self._key = source.open(), key
            return self._evaluator(schedule)


_OPENED = _Opened()


def _evaluate(key: str, source: Source, number: int, schedule: NamedSchedule) -> tuple[int, Outcome]:
    """Run in a worker."""
    return number, _OPENED.evaluate(key, source, schedule)
