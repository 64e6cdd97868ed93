"""The passes on communication that run: all of them, unless one fails or a program sends less without some.

Each pass counts what it saves before the conversion, which may need other collectives than it expects: then the program
is converted with fewer passes, too, or with a plan for one axis after the other, and the form that sends least stays.
Where a pass fails, or leaves a program whose types do not fit, none of them runs, and a warning names it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Generic, TypeVar

from attrs import evolve

from shardy_py.errors import Diagnostic, ShardyError
from shardy_py.guards.error_texts import describe_error
from shardy_py.ir.interfaces.passes import Pass
from shardy_py.local.communication.partial_sums import CombinePartialSumsLatePass
from shardy_py.local.communication.plan import PlanCommunicationPass
from shardy_py.values import frozen

_LEAST_LOSS = 0.5
"""The bytes more that count as a loss."""
Form = TypeVar("Form")


@frozen(eq=False)
class Attempt(Generic[Form]):
    """A local program with the bytes that a device sends in it.

    Args:
        form: The program.
        sent: The bytes.
        at_least: The bytes that are sent at least without any of the passes.
        is_changed: Whether the passes changed what is sent.
    """

    form: Form
    sent: float
    at_least: float
    is_changed: bool = True


@frozen(eq=False)
class Selection(Generic[Form]):
    """The local program that sends least.

    Args:
        form: The program.
        warnings: The pass that failed, if one did.
    """

    form: Form
    warnings: tuple[Diagnostic, ...] = ()


def with_least_communication(
    attempt: Callable[[Sequence[Pass]], Attempt[Form]], passes: Sequence[Pass]
) -> Selection[Form]:
    """Return the local program that sends least, made with all passes on communication or with fewer.

    It is the one with all passes where that sends no more than the program without them, and where they changed
    nothing; others are not made then.

    Args:
        attempt: Makes the program with some passes.
        passes: All passes on communication.

    Raises:
        ShardyError: there is no local program, neither with the passes nor without them.
    """
    try:
        best = attempt(passes)
    except Exception as error:
        # Whatever a pass raises: the program runs without the passes, and the warning says what.
        return _without_passes(attempt, passes, error)
    return Selection(_best_of(best, attempt, passes))


def _without_passes(
    attempt: Callable[[Sequence[Pass]], Attempt[Form]], passes: Sequence[Pass], error: Exception
) -> Selection[Form]:
    """Return the program without passes and a warning that names the one that fails; where it fails, too, the error."""
    try:
        form = attempt(()).form
    except Exception:
        raise error from None
    works, fails = 0, len(passes)
    while works + 1 < fails:
        middle = (works + fails) // 2
        try:
            attempt(passes[:middle])
        except Exception as other:
            fails, error = middle, other
        else:
            works = middle
    origin = error.diagnostics[0] if isinstance(error, ShardyError) else Diagnostic("", describe_error(error))
    message = f"{passes[fails - 1].name} fails here, so no communication pass runs, and more bytes are sent"
    hint = "the results are right; please report it"
    message = f"{message}: {origin.message}"
    warning = Diagnostic("communication-pass", message, origin.location, origin.op, hint, severity="warning")
    return Selection(form, (warning,))


def _best_of(best: Attempt[Form], attempt: Callable[[Sequence[Pass]], Attempt[Form]], passes: Sequence[Pass]) -> Form:
    """Return the program that sends least, given the one with all passes."""
    if not best.is_changed or best.sent <= best.at_least + _LEAST_LOSS:
        return best.form
    for fewer in _fewer(passes):
        try:
            candidate = attempt(fewer)
        except ShardyError:
            # It needs a pass to be converted.
            continue
        if not fewer and best.sent <= candidate.sent + _LEAST_LOSS:
            return best.form
        if candidate.sent < best.sent - _LEAST_LOSS:
            best = candidate
    return best.form


def _fewer(passes: Sequence[Pass]) -> Iterator[Sequence[Pass]]:
    """Yield other choices of passes, none first: only where it is better than all do the rest come into question."""
    yield ()
    yield [evolve(item, joins_axes=False) if isinstance(item, PlanCommunicationPass) else item for item in passes]
    for kind in (PlanCommunicationPass, CombinePartialSumsLatePass):
        remaining = [item for item in passes if not isinstance(item, kind)]
        if len(remaining) < len(passes):
            yield remaining
