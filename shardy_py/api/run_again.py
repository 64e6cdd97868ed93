"""The arguments of a run that is done again, for its page and for advice."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shardy_py.api.options import PropagateArguments
from shardy_py.errors import Diagnostic, OptionError

if TYPE_CHECKING:
    from shardy_py.schedule.from_options import ScheduleLike


def order_of(given: PropagateArguments) -> ScheduleLike | None:
    """Return the order of ops of a run, with the ops that came before it."""
    if given.op_priorities is None:
        return given.schedule
    from shardy_py.api.engine_options import engine_options
    from shardy_py.api.run_input import make_semantics

    registry = make_semantics(given, given.registry)
    return engine_options(given, registry, schedule=given.schedule, op_priorities=given.op_priorities).schedule


def untraced() -> OptionError:
    """Return the error for a question that only a traced run answers."""
    return OptionError(Diagnostic("no-trace", "the run was not traced", hint="call propagate with trace=True"))
