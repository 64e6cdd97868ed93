"""Arguments of the functions that give advice."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real
from typing import Literal

from attrs import field

from shardy_py.api.options import ProgramInput
from shardy_py.api.program_source import DEFAULT_OPTIONS, SessionOptions
from shardy_py.cost.advice.pricing import Figures, Goal, Judge
from shardy_py.cost.machines.placement import AxisLinks
from shardy_py.cost.machines.toml import MachineLike, get_machine
from shardy_py.cost.session import Session
from shardy_py.cost.sweeps.comparison import Measure, choose_measure
from shardy_py.errors import Diagnostic, OptionError
from shardy_py.schedule.from_options import ScheduleLike
from shardy_py.support.arguments import shown
from shardy_py.support.texts import format_bytes
from shardy_py.values import frozen

AdviceProgress = Callable[[int, int], None]
"""Called with the number of trials that are done, and the largest number that there may be."""


def no_progress(done: int, total: int) -> None:
    """Report nothing."""


@frozen(slots=False, kw_only=True)
class PricingOptions:
    """Options of all advice: what outcomes are priced by, and how many.

    Args:
        machine: The machine: a `Machine`, the name of one that comes along, or the path of a TOML file;
            without one there are no times.
        axes: The links of the machine that the axes of the mesh run over, where that does not follow from their order.
        schedule: The order of ops.
        minimise: The measure to make small: ``time``, ``bytes`` or ``memory``; by default time, and bytes where there
            is no machine.
        budget_memory: The bytes that a device may use at most; by default all that the machine has.
        trials: The largest number of outcomes to price.
        progress: Called after each trial.
    """

    machine: MachineLike | None = None
    axes: AxisLinks | None = None
    schedule: ScheduleLike | None = None
    minimise: Measure | None = None
    budget_memory: float | None = None
    trials: int = 200
    progress: AdviceProgress = no_progress


@frozen(slots=False, kw_only=True)
class AdviceOptions(PricingOptions):
    """Options of advice on constraints.

    Args:
        limit: The largest number of constraints in the set.
    """

    limit: int = 4


@frozen(slots=False)
class AdviseArguments(AdviceOptions, ProgramInput):
    """Arguments of `advise`.

    Args:
        module: The program, in any form that `propagate` takes.
        options: How to propagate, and more plugins.
    """

    options: SessionOptions = field(default=DEFAULT_OPTIONS, kw_only=True)


@frozen(slots=False)
class AdviseInputsArguments(ProgramInput):
    """Arguments of `advise_inputs`.

    Args:
        module: The program, in any form that `propagate` takes.
        machine: The machine: a `Machine`, the name of one that comes along, or the path of a TOML file.
        minimise: The measure to make small: ``time`` or ``memory``.
        budget_memory: The bytes that a device may use at most; by default all that the machine has.
        options: How to propagate, and more plugins.
    """

    machine: MachineLike = field(kw_only=True)
    minimise: Literal["time", "memory"] = field(default="time", kw_only=True)
    budget_memory: float | None = field(default=None, kw_only=True)
    options: SessionOptions = field(default=DEFAULT_OPTIONS, kw_only=True)


def open_judge(session: Session, options: PricingOptions) -> tuple[Goal, Judge]:
    """Return what is to become small, and the judge of a program.

    Args:
        session: The program.
        options: The options of the advice.

    Raises:
        OptionError: an option is not valid.
    """
    if session.names is None:
        message = "the session does not keep the names of the given program"
        raise OptionError(Diagnostic("no-names", message, hint="open it with keep_names=True"))
    _check_least("trials", options.trials, least=1)
    measure = choose_measure(options.minimise, options.machine)
    machine = None if options.machine is None else get_machine(options.machine)
    memory = options.budget_memory
    if memory is None and machine is not None:
        memory = float(machine.memory_bytes)
    if memory is not None and (isinstance(memory, bool) or not isinstance(memory, Real) or not memory > 0):
        raise OptionError(
            Diagnostic("invalid-budget", f"the budget is {shown(memory)} bytes", hint="allow some memory")
        )
    return Goal(measure, memory), Judge(session, machine, options.axes, options.schedule)


def budget_problem(goal: Goal, figures: Figures, subject: str) -> Diagnostic | None:
    """Return by how much a program with the best advice exceeds the memory that a device may use; None if it fits.

    Args:
        goal: The budget.
        figures: The best figures.
        subject: The kind of advice, as the message names it.
    """
    excess = goal.excess(figures)
    if not excess or goal.memory is None:
        return None
    needed, budget, over = (format_bytes(round(size)) for size in (figures.peak_bytes, goal.memory, excess))
    message = f"no {subject} meets the memory budget of {budget}: the best needs {needed}, which is {over} more"
    hint = "allow more memory, more devices along the mesh, or more trials"
    return Diagnostic("budget-out-of-reach", message, hint=hint)


def check_limit(limit: int) -> None:
    """Check the largest number of constraints.

    Raises:
        OptionError: it is negative.
    """
    _check_least("limit", limit, least=0)


def _check_least(name: str, number: int, *, least: int) -> None:
    if number < least:
        raise OptionError(Diagnostic(f"invalid-{name}", f"{name} is {number}", hint=f"give at least {least}"))
