"""``shardy cost --against-xla``: a process of its own compiles the program for host devices and measures it."""

from __future__ import annotations

from typing import Any

from shardy_py.cli.child import answer_parent, ask_child
from shardy_py.cli.progress import ShowProgress, Steps, show_nothing
from shardy_py.cli.session import GivenProgram
from shardy_py.errors import ShardyError
from shardy_py.jax.figures.values import XlaFigures
from shardy_py.support.texts import as_error
from shardy_py.values import frozen

TIMEOUT = 600.0
"""The seconds that XLA may take to compile a program."""
_OWN_STEPS = 2
"""The steps after propagation: to compile, and to count."""


@frozen
class FiguresRequest:
    """A request to the other process.

    Args:
        program: The program, and how it is propagated.
        schedule: The order of ops, or None.
    """

    program: GivenProgram
    schedule: Any


@frozen
class FiguresAnswer:
    """An answer of the other process.

    Args:
        figures: XLA's figures; None where there is an error.
        error: The error.
    """

    figures: XlaFigures | None = None
    error: ShardyError | None = None


def xla_figures(
    program: GivenProgram, schedule: Any, *, timeout: float = TIMEOUT, show: ShowProgress = show_nothing
) -> XlaFigures:
    """Return XLA's figures of a program that is compiled for as many host devices as its mesh has.

    Args:
        program: The program, and how it is propagated.
        schedule: The order of ops, or None.
        timeout: The seconds that it may take.
        show: Called with the steps that the other process reports.

    Raises:
        ShardyError: the program is not valid, XLA refuses it, or it ends the process.
    """
    answer: FiguresAnswer = ask_child(__name__, FiguresRequest(program, schedule), timeout=timeout, show=show)
    if answer.error is not None:
        raise answer.error
    assert answer.figures is not None
    return answer.figures


def _answer(request: FiguresRequest, show: ShowProgress) -> FiguresAnswer:
    try:
        return FiguresAnswer(_figures(request, show))
    except ShardyError as error:
        return FiguresAnswer(error=error)
    except (MemoryError, RecursionError, OverflowError) as error:
        return FiguresAnswer(error=as_error(error, request.program.file))


def _figures(request: FiguresRequest, show: ShowProgress) -> XlaFigures:
    steps = Steps(show, _OWN_STEPS)
    result = request.program.propagate(schedule=request.schedule, on_progress=steps.on_progress)
    steps.start("Compiling in XLA")
    # JAX counts its devices when it starts, and nothing above has started it.
    from shardy_py.jax.figures import measure
    from shardy_py.jax.host import use_devices

    use_devices(max((mesh.total_size for mesh in result.program.meshes.values()), default=1))
    compiled = result.to_jax(partitioner="xla", warnings=[])
    steps.start("Counting in XLA")
    return measure(compiled)


def main() -> None:
    """Answer the request of the command, as its worker."""
    answer_parent(_answer)
