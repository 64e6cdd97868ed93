"""The run of a result done again, for its page and for advice: doors to the rooms above."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from shardy_py.api.given_run import GivenRun
from shardy_py.api.options import PropagateArguments
from shardy_py.errors import Diagnostic, OptionError

if TYPE_CHECKING:
    from shardy_py.cost.advice.constraints import Advice
    from shardy_py.explain.explore.page import Page
    from shardy_py.schedule.given import ScheduleLike


def page_of(given: GivenRun | None, *, against: ScheduleLike | None, machine: Any, proposals: int, title: str) -> Page:
    """Return the page of a run; see `Result.explore`."""
    from shardy_py.explain.explore.explore import ExploreOptions, explore_again

    arguments = _arguments_of(given)
    options = ExploreOptions(
        schedule=_order_of(arguments), against=against, machine=machine, proposals=proposals, title=title
    )
    return explore_again(arguments, options)


def advice_for(
    given: GivenRun | None,
    *,
    machine: Any,
    minimise: Literal["time", "bytes", "memory"] | None,
    budget_memory: float | None,
    trials: int,
    limit: int,
) -> Advice:
    """Return advice for a run; see `Result.advise`."""
    from shardy_py.cost.advice.advise import advise_again
    from shardy_py.cost.advice.arguments import AdviceOptions

    arguments = _arguments_of(given)
    options = AdviceOptions(
        machine=machine,
        schedule=_order_of(arguments),
        minimise=minimise,
        budget_memory=budget_memory,
        trials=trials,
        limit=limit,
    )
    return advise_again(arguments, options)


def untraced() -> OptionError:
    """Return the error for a question that only a traced run answers."""
    return OptionError(Diagnostic("no-trace", "the run was not traced", hint="call propagate with trace=True"))


def _order_of(given: PropagateArguments) -> ScheduleLike | None:
    """Return the order of ops of a run, with the ops that came before it."""
    if given.op_priorities is None:
        return given.schedule
    from shardy_py.api.engine_options import engine_options
    from shardy_py.api.run_input import make_semantics

    registry = make_semantics(given, given.registry)
    return engine_options(given, registry, schedule=given.schedule, op_priorities=given.op_priorities).schedule


def _arguments_of(given: GivenRun | None) -> PropagateArguments:
    """Return the arguments of a run, to do it again.

    Raises:
        OptionError: the run was not traced.
    """
    if given is None:
        raise untraced()
    return given.arguments()
