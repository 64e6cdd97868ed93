"""Sweep: many schedules on one program and one machine, in this process or others, with outcomes from a store."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property, partial
from importlib.metadata import version
from pathlib import Path

from attrs import evolve

from shardy_py.api.keywords import narrow
from shardy_py.api.options import ProgramInput
from shardy_py.api.program_source import DEFAULT_OPTIONS, ProgramSource, SessionOptions
from shardy_py.cost.session import Session
from shardy_py.cost.sweeps.evaluator import EvaluatorSource, SessionEvaluator, Setting
from shardy_py.cost.sweeps.named_schedules import NamedSchedule
from shardy_py.cost.sweeps.outcomes import Outcome
from shardy_py.cost.sweeps.store import SweepStore
from shardy_py.cost.sweeps.workers import run_schedules
from shardy_py.errors import Diagnostic, OptionError, WorkerError
from shardy_py.values import define, show_in_full

Progress = Callable[[int, int, Outcome], None]
"""Called with how many schedules are done, how many there are, and what became of the last one."""


def no_progress(done: int, total: int, outcome: Outcome) -> None:
    """Report nothing."""


@define(frozen=True, eq=False, slots=False)
class Sweep:
    """A program and a machine, ready to evaluate schedules.

    Args:
        session: The session of this process.
        setting: The conditions of the evaluation.
        make_source: Makes what other processes open the program from.
    """

    session: Session
    setting: Setting
    make_source: Callable[[], ProgramSource]

    @cached_property
    def source(self) -> EvaluatorSource:
        """Source for other processes.

        Raises:
            OptionError: the session was opened elsewhere.
        """
        return EvaluatorSource(self.make_source(), self.setting)

    @cached_property
    def evaluator(self) -> SessionEvaluator:
        """Evaluator of this process."""
        return SessionEvaluator(self.session, self.setting)

    def open_store(self, path: str | Path) -> SweepStore:
        """Open a store for outcomes of this sweep.

        Raises:
            OptionError: see `SweepStore`.
        """
        setting = self.setting
        program = self.source.program
        header = {
            "program": program.program_key,
            "machine": _digest(show_in_full((setting.machine, setting.axes, setting.layout))),
            "first": _digest(setting.first.text),
            "shardy_py": version("shardy_py"),
        }
        return SweepStore(path, header, plugins=program.plugins_key)

    def run(
        self,
        schedules: Sequence[NamedSchedule],
        *,
        jobs: int | None = None,
        store: SweepStore | None = None,
        progress: Progress = no_progress,
    ) -> tuple[Outcome, ...]:
        """Return the outcome of each schedule, in their order.

        Args:
            schedules: The schedules; equal ones are evaluated once.
            jobs: How many processes, see `run_schedules`.
            store: What has outcomes already and gets those that are new, as they come.
            progress: Called with each outcome, be it from the store.

        Raises:
            WorkerError: a process was ended from outside; the error says what the store has.
        """
        outcomes: dict[int, Outcome] = {}
        for number, schedule in enumerate(schedules):
            stored = None if store is None else store.find(schedule.name, schedule.text)
            if stored is not None:
                outcomes[number] = stored
                progress(len(outcomes), len(schedules), stored)
        rest = [number for number in range(len(schedules)) if number not in outcomes]
        with _naming(store):
            for index, outcome in self._run([schedules[number] for number in rest], jobs):
                outcomes[rest[index]] = outcome
                if store is not None:
                    store.add(outcome)
                progress(len(outcomes), len(schedules), outcome)
        return tuple(outcomes[number] for number in range(len(schedules)))

    def _run(self, schedules: Sequence[NamedSchedule], jobs: int | None) -> Iterator[tuple[int, Outcome]]:
        """Yield the number and the outcome of each schedule, as they come; what is equal is evaluated once."""
        numbers: dict[str, list[int]] = {}
        for number, schedule in enumerate(schedules):
            numbers.setdefault(schedule.text, []).append(number)
        distinct = [schedules[same[0]] for same in numbers.values()]
        done = run_schedules(distinct, evaluator=self.evaluator, source=lambda: self.source, jobs=jobs)
        for index, outcome in done:
            for number in numbers[distinct[index].text]:
                yield number, evolve(outcome, name=schedules[number].name)


@contextmanager
def _naming(store: SweepStore | None) -> Iterator[None]:
    """Add to errors of lost processes what is left of their work."""
    try:
        yield
    except WorkerError as error:
        if store is None:
            raise
        hint = f"{store.path} has the {len(store)} schedules that are done, the same call goes on from there"
        raise WorkerError(*(evolve(item, hint=hint) for item in error.diagnostics)) from None


def open_program(program_input: ProgramInput, options: SessionOptions) -> tuple[Session, Callable[[], ProgramSource]]:
    """Return the session of a program in this process, and the function that makes its source for other processes.

    Args:
        program_input: The program; its module may be an open `Session`.
        options: How to propagate, and more plugins.

    Raises:
        ShardyError: the module or an option is not valid.
    """
    if isinstance(program_input.module, Session):
        _check_session(program_input, options)
        return program_input.module, _no_source
    program = narrow(program_input, ProgramInput)
    return options.open(program), partial(ProgramSource.of, program, options)


def _check_session(program_input: ProgramInput, options: SessionOptions) -> None:
    """Check that nothing is given beside an open session that it would have had to be opened with.

    Raises:
        OptionError: there is.
    """
    names = ("mesh", "in_shardings", "out_shardings", "sizes", "args", "kwargs")
    excluded = [name for name in names if getattr(program_input, name) is not None]
    excluded += ["options"] if options != DEFAULT_OPTIONS else []
    if excluded:
        message = f"an open session and {' and '.join(excluded)} exclude each other"
        raise OptionError(Diagnostic("option-conflict", message, hint="give them to Session.open"))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _no_source() -> ProgramSource:
    """Refuse to send a session."""
    message = "an open session cannot be sent to other processes, nor can a store tell of which program it is"
    raise OptionError(Diagnostic("no-source", message, hint="give the module itself"))
