"""Search for a good schedule for a program and a machine by a Bayesian optimiser (optuna's TPE)."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, get_args

from attrs import evolve, field

from shardy_py.api.keywords import takes
from shardy_py.cost.machines.toml import get_machine
from shardy_py.cost.priced_input import priced_input
from shardy_py.cost.sweeps.comparison import (
    Comparison,
    Measure,
    SearchArguments,
    choose_measure,
    make_comparison,
    measure_of,
)
from shardy_py.cost.sweeps.evaluator import Setting
from shardy_py.cost.sweeps.named_schedules import NamedSchedule, named_schedules
from shardy_py.cost.sweeps.outcomes import Outcome, Row
from shardy_py.cost.sweeps.random_schedules import SweepOpKind, op_kinds
from shardy_py.cost.sweeps.sweep import Sweep, open_program
from shardy_py.cost.sweeps.workers import require_joblib
from shardy_py.errors import Diagnostic, OptionError, as_warnings, require_library
from shardy_py.schedule.builtin import BUILTIN
from shardy_py.schedule.model import Direction, Entry, Level, Schedule, Selector, Uses
from shardy_py.sharding.rule import FactorKind
from shardy_py.values import frozen

if TYPE_CHECKING:
    from optuna import Study
    from optuna.trial import Trial

MAX_LEVELS = 3
"""The most levels that a trial puts before the schedule it begins with."""

_Evaluate = Callable[[Sequence[NamedSchedule], int], tuple[Outcome, ...]]
"""Evaluates schedules, given how many trials are done."""

_REST = "-"
_ALL = "all"
_THEN = "then"
_USES: tuple[Uses, ...] = get_args(Uses)
_DIRECTIONS = {"both": Direction.BOTH, "forward": Direction.FORWARD, "backward": Direction.BACKWARD}
_DRAWN = 4
"""One of so many trials is drawn at random; the optimiser learns from them what to look at."""


@frozen
class SearchSpace:
    """All schedules that a search can find: a built-in one, with some ops taken out to come first.

    Every kind of ops is put into one of a few first levels, with a direction, the uses and the factors that the level
    speaks of, or it is left to the built-in schedule that follows. With everything left to it, it is that schedule.

    Args:
        kinds: The kinds of ops that can be put in order.
        bases: The schedules to begin with, the default one first.
    """

    kinds: tuple[SweepOpKind, ...]
    bases: tuple[NamedSchedule, ...]

    @property
    def parameters(self) -> dict[str, tuple[str, ...]]:
        """The parameters by name, each with its values; the first one leaves the schedule to begin with as it is."""
        parameters: dict[str, tuple[str, ...]] = {}
        for kind in self.kinds:
            parameters[kind.name] = (_REST, *map(str, range(MAX_LEVELS)))
            parameters[f"{kind.name} direction"] = tuple(_DIRECTIONS)
            parameters[f"{kind.name} uses"] = _USES
            if len(kind.factor_kinds) > 1:
                parameters[f"{kind.name} factors"] = (_ALL, *(item.value for item in kind.factor_kinds))
        return {**parameters, _THEN: tuple(item.name for item in self.bases)}

    def start(self, base: NamedSchedule) -> dict[str, str]:
        """Return the parameters that stand for one of the schedules to begin with."""
        return {**{name: values[0] for name, values in self.parameters.items()}, _THEN: base.name}

    def suggest(self, trial: Trial) -> dict[str, str]:
        """Choose the parameters of a trial by the optimiser."""
        return {name: str(trial.suggest_categorical(name, values)) for name, values in self.parameters.items()}

    def schedule(self, chosen: Mapping[str, str]) -> Schedule:
        """Return the schedule that parameters stand for."""
        levels: list[list[Entry]] = [[] for _ in range(MAX_LEVELS)]
        for kind in self.kinds:
            if chosen[kind.name] != _REST:
                levels[int(chosen[kind.name])].append(_entry(kind, chosen))
        first = [tuple(entries) for entries in levels if entries]
        base = next(item for item in self.bases if item.name == chosen[_THEN])
        levels_before = [Level(f"level {i}", entries) for i, entries in enumerate(first)]
        return evolve(base.schedule, levels=(*levels_before, *base.schedule.levels))


def _entry(kind: SweepOpKind, chosen: Mapping[str, str]) -> Entry:
    factors = chosen.get(f"{kind.name} factors", _ALL)
    uses = next(item for item in _USES if item == chosen[f"{kind.name} uses"])
    selector = Selector(names=(kind.name,), factor_kinds=() if factors == _ALL else (FactorKind(factors),), uses=uses)
    return Entry(selector, _DIRECTIONS[chosen[f"{kind.name} direction"]])


@frozen
class SearchResult:
    """Result of a search.

    Args:
        best: The trial with the smallest measure, the first of several; never worse than the default schedule.
        default: The trial of the default schedule.
        trials: All trials in order.
        minimise: The measure.
        warnings: What is worth knowing of the program, and the problems of the store that outcomes were taken from.
    """

    best: Row
    default: Row
    trials: tuple[Outcome, ...]
    minimise: Measure
    warnings: tuple[Diagnostic, ...] = field(default=(), converter=as_warnings)

    @property
    def comparison(self) -> Comparison:
        """The trials as a table."""
        return make_comparison(self.trials, first=self.default.name, sorted_by=self.minimise, warnings=self.warnings)


@takes(SearchArguments)
def search_schedule(arguments: SearchArguments) -> SearchResult:
    """Search for a schedule that costs little.

    The first trials are the built-in schedules, the default one first. The same seed and the same number of processes
    give the same trials.

    Raises:
        ShardyError: the module or an option is not valid, or optuna is missing.
    """
    seed, budget, jobs = arguments.seed, arguments.budget, arguments.jobs
    _check_numbers(seed, budget, jobs)
    measure = choose_measure(arguments.minimise, arguments.machine)
    machine = None if arguments.machine is None else get_machine(arguments.machine)
    require_optuna()
    session, make_source = open_program(priced_input(arguments, arguments.machine), arguments.options)
    bases = named_schedules(BUILTIN, session.registry)
    space = SearchSpace(op_kinds(session.problem), bases)
    sweep = Sweep(session, Setting(bases[0], machine, arguments.axes, arguments.layout), make_source)
    with nullcontext() if arguments.store is None else sweep.open_store(arguments.store) as opened:

        def evaluate(schedules: Sequence[NamedSchedule], done: int) -> tuple[Outcome, ...]:
            def report(count: int, total: int, outcome: Outcome) -> None:
                arguments.progress(done + count, budget, outcome)

            return sweep.run(schedules, jobs=jobs, store=opened, progress=report)

        trials = _run_trials(space, evaluate, minimise=measure, budget=budget, seed=seed, at_once=_at_once(jobs))
    problems = () if opened is None else opened.problems
    return evolve(_result(trials, measure), warnings=(*session.warnings, *problems))


def _check_numbers(seed: int, budget: int, jobs: int | None) -> None:
    if not 0 <= seed < 2**32:
        raise OptionError(Diagnostic("invalid-seed", f"the seed is {seed}", hint="give a number of 32 bits"))
    if jobs == 0 or (jobs is not None and jobs < -1):
        raise OptionError(Diagnostic("invalid-jobs", f"jobs is {jobs}", hint="give 1, 2, ..., or -1 for all cores"))
    if budget < 1:
        raise OptionError(Diagnostic("invalid-budget", f"the budget is {budget}", hint="allow at least one trial"))


def require_optuna() -> None:
    """Check that optuna is installed.

    Raises:
        OptionError: it is not.
    """
    require_library("optuna", purpose="a search needs", extra="search")


def _run_trials(
    space: SearchSpace, evaluate: _Evaluate, *, minimise: Measure, budget: int, seed: int, at_once: int
) -> tuple[Outcome, ...]:
    """Return the outcomes of all trials; those of a batch are chosen before any of them is evaluated."""
    outcomes: list[Outcome] = []
    with _quiet_study(seed, at_once, budget // _DRAWN + len(space.bases)) as study:
        for base in space.bases:
            study.enqueue_trial(space.start(base))
        while len(outcomes) < budget:
            batch = [study.ask() for _ in range(min(at_once, budget - len(outcomes)))]
            schedules = [_named(space, trial) for trial in batch]
            batch_outcomes = evaluate(schedules, len(outcomes))
            for trial, outcome in zip(batch, batch_outcomes, strict=True):
                _tell(study, trial, outcome, minimise)
            outcomes += batch_outcomes
    return tuple(outcomes)


def _named(space: SearchSpace, trial: Trial) -> NamedSchedule:
    chosen = space.suggest(trial)
    base = space.bases[trial.number] if trial.number < len(space.bases) else None
    return NamedSchedule(f"trial {trial.number}" if base is None else base.name, space.schedule(chosen))


def _tell(study: Study, trial: Trial, outcome: Outcome, minimise: Measure) -> None:
    from optuna.trial import TrialState

    if isinstance(outcome, Row):
        study.tell(trial, measure_of(minimise)(outcome))
    else:
        study.tell(trial, state=TrialState.FAIL)


@contextmanager
def _quiet_study(seed: int, at_once: int, drawn: int) -> Iterator[Study]:
    """Provide a study that neither logs nor warns of options that may change."""
    import optuna

    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        sampler = optuna.samplers.TPESampler(
            seed=seed, multivariate=True, constant_liar=at_once > 1, n_startup_trials=drawn
        )
        try:
            yield optuna.create_study(sampler=sampler)
        finally:
            optuna.logging.set_verbosity(before)


def _result(trials: Sequence[Outcome], minimise: Measure) -> SearchResult:
    rows = [item for item in trials if isinstance(item, Row)]
    default = trials[0]
    if not isinstance(default, Row):
        message = f"the default schedule has no result: {'; '.join(default.problems)}"
        raise OptionError(Diagnostic("no-default", message, hint="compare shows which schedules have one"))
    return SearchResult(min(rows, key=measure_of(minimise)), default, tuple(trials), minimise)


def _at_once(jobs: int | None) -> int:
    if jobs is None or jobs == 1:
        return 1
    require_joblib()
    from joblib import effective_n_jobs

    return int(effective_n_jobs(jobs))
