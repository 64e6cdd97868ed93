"""``shardy compare-jit``: a process of its own compiles the program for host devices and compares."""

from __future__ import annotations

import json
import os
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import attrs
import click

from shardy_py.cli.child import answer_parent, ask_child
from shardy_py.cli.files import echo_report, print_warnings
from shardy_py.cli.progress import ShowProgress, Steps, progress_bar
from shardy_py.cli.registry import schedule_argument
from shardy_py.cli.session import GivenProgram
from shardy_py.errors import Diagnostic, OptionError, ShardyError
from shardy_py.jax.jit_comparison import JitComparison
from shardy_py.support.texts import as_error
from shardy_py.values import frozen


@frozen
class CompareRequest:
    """A request to the other process.

    Args:
        program: The program, and how it is propagated.
        reference: The module and the name of a program of Python, with a colon between; "" for a file.
        schedule: The order of ops, or None.
        devices: The number of host devices for a program of Python.
    """

    program: GivenProgram
    reference: str
    schedule: Any
    devices: int


@frozen
class CompareAnswer:
    """An answer of the other process.

    Args:
        comparison: The comparison; None where there is an error.
        warnings: The warnings of the run.
        error: The error.
    """

    comparison: JitComparison | None = None
    warnings: tuple[Diagnostic, ...] = ()
    error: ShardyError | None = None


def run_compare_jit(
    *, program: str, devices: int, as_json: bool, timeout: float, schedule: str | None, **options: Any
) -> None:
    """Print how the decisions compare; exit with 1 where they differ."""
    is_file = program == "-" or ":" not in program or Path(program).exists()
    # The file of a program of Python is never read.
    input_program = GivenProgram.of(file=program, **options) if is_file else GivenProgram.of(file=os.devnull, **options)
    order = None if schedule is None else schedule_argument(schedule)
    with progress_bar("", enabled=not as_json) as show:
        reference = "" if is_file else program
        answer = compare_in_child(input_program, reference, order, devices=devices, timeout=timeout, show=show)
    assert answer.comparison is not None
    print_warnings(answer.warnings)
    if as_json:
        click.echo(json.dumps({**attrs.asdict(answer.comparison), "equal": answer.comparison.equal}, indent=2))
    else:
        echo_report(str(answer.comparison))
    sys.exit(0 if answer.comparison.equal else 1)


def compare_in_child(
    program: GivenProgram,
    reference: str,
    schedule: Any,
    *,
    devices: int = 8,
    timeout: float,
    show: ShowProgress,
) -> CompareAnswer:
    """Return how a program compares with what `jax.jit` decides, compiled in another process.

    Args:
        program: The program, and how it is propagated.
        reference: The module and the name of a program of Python; "" for a file.
        schedule: The order of ops, or None.
        devices: The number of host devices for a program of Python.
        timeout: The seconds that it may take.
        show: Called with the steps that the other process reports.

    Raises:
        ShardyError: the program is not valid, or XLA refuses it.
    """
    request = CompareRequest(program, reference, schedule, devices)
    answer: CompareAnswer = ask_child(__name__, request, timeout=timeout, show=show)
    if answer.error is not None:
        raise answer.error
    return answer


def _answer(request: CompareRequest, show: ShowProgress) -> CompareAnswer:
    try:
        return _compare(request, show)
    except ShardyError as error:
        return CompareAnswer(error=error)
    except (MemoryError, RecursionError, OverflowError) as error:
        return CompareAnswer(error=as_error(error, request.program.file))


def _compare(request: CompareRequest, show: ShowProgress) -> CompareAnswer:
    from shardy_py.jax.host import use_devices

    steps = Steps(show, 1)
    program = request.program
    if request.reference:
        use_devices(request.devices)
        program = attrs.evolve(program, input=attrs.evolve(program.input, module=_find_program(request.reference)))
    result = program.propagate(schedule=request.schedule, on_progress=steps.on_progress)
    if not request.reference:
        # JAX counts its devices when it starts, and nothing above has started it.
        use_devices(max((mesh.total_size for mesh in result.program.meshes.values()), default=1))
    steps.start("Compiling in XLA")
    return CompareAnswer(result.compare_jit(), result.warnings)


def _find_program(reference: str) -> Any:
    """Return the program of JAX that a module has under a name, or that a function of that name returns.

    Raises:
        OptionError: there is no such module or name, or it is something else.
    """
    module, _, name = reference.partition(":")
    # Behind all else, so that no file of the folder stands for a module of a library.
    sys.path.append(os.getcwd())
    try:
        program: Any = import_module(module)
        for part in name.split("."):
            program = getattr(program, part)
        if callable(program) and not hasattr(program, "lower") and not hasattr(program, "compiler_ir"):
            program = program()
    except Exception as error:  # whatever the module of the user raises
        message = f"{reference} cannot be imported: {type(error).__name__}: {error}"
        raise OptionError(Diagnostic("no-program", message, hint="give module:name, or a file")) from error
    if not hasattr(program, "lower") and not hasattr(program, "compiler_ir") and not hasattr(program, "mlir_module"):
        message = f"{reference} is a {type(program).__name__}, not a program of JAX"
        hint = "name what jax.jit(f).lower(...) returned, or a function without parameters that returns it"
        raise OptionError(Diagnostic("no-program", message, hint=hint))
    return program


def main() -> None:
    """Answer the request of the command, as its worker."""
    answer_parent(_answer)
