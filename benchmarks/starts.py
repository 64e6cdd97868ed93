"""Start-up times: importing the package, the help of the command line, and a whole ``shardy propagate``."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from statistics import median
from time import perf_counter

from attrs import frozen

from benchmarks.runs import PIPELINE, TINY

_TIMED = (
    "from time import perf_counter; begin = perf_counter(); {}; "
    "import sys; sys.stdout.write(repr(perf_counter() - begin))"
)
_COMMAND = "import sys; from shardy_py.cli.main import main; sys.argv = ['shardy', {}]; main()"
_HELP = _COMMAND.format("'--help'")
_PROPAGATE = _COMMAND.format("'propagate', '-'")
_SCRIPT = f"""
import sys
from jaxlib.mlir import ir, passmanager
from jaxlib.mlir._mlir_libs import _jax_mlir_ext, _sdy, _stablehlo
registry = ir.DialectRegistry()
_jax_mlir_ext.register_dialects(registry)
with ir.Context() as context:
    context.append_dialect_registry(registry)
    _sdy.register_dialect(context)
    _stablehlo.register_dialect(context)
    module = ir.Module.parse(sys.stdin.read())
    passes = passmanager.PassManager.parse({PIPELINE!r})
    passes.enable_verifier(False)
    passes.run(module.operation)
    print(module)
"""
"""The same as the command does, by the C++ passes."""
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
"""Environment in which no library starts threads that spin; both sides are measured in it."""


@frozen
class Starts:
    """Medians of several fresh processes, in seconds; the last is a ratio.

    Args:
        import_seconds: ``import shardy_py``, once the interpreter runs.
        propagate_seconds: ``from shardy_py import propagate``, which imports the engine and all passes.
        help_seconds: ``shardy --help``, from start to end.
        interpreter_seconds: Of that, an interpreter that does nothing.
        command_seconds: ``shardy propagate`` of a program of one op, from start to end.
        script_seconds: A script that parses the same program, runs the C++ passes and prints.
        cpu_ratio: The first of these two by the second, by processor time, in pairs that follow each other.
    """

    import_seconds: float
    propagate_seconds: float
    help_seconds: float
    interpreter_seconds: float
    command_seconds: float
    script_seconds: float
    cpu_ratio: float


def measure_starts(*, runs: int) -> Starts:
    """Start so many processes of each kind, alternately."""
    imports, engines, helps, nothing, commands, scripts, ratios = [], [], [], [], [], [], []
    for _ in range(runs):
        imports.append(_statement("import shardy_py"))
        engines.append(_statement("from shardy_py import propagate"))
        helps.append(_process(_HELP).seconds)
        nothing.append(_process("pass").seconds)
        command, script = _process(_PROPAGATE, TINY), _process(_SCRIPT, TINY)
        commands.append(command.seconds)
        scripts.append(script.seconds)
        ratios.append(command.cpu_seconds / script.cpu_seconds)
    return Starts(*map(median, (imports, engines, helps, nothing, commands, scripts, ratios)))


@frozen
class _Process:
    """A process that has ended: its seconds by the clock, its processor time, and its output."""

    seconds: float
    cpu_seconds: float
    output: str


def _statement(statement: str) -> float:
    """Return the seconds of a statement in a fresh interpreter."""
    return float(_process(_TIMED.format(statement)).output)


def _process(code: str, text: str = "") -> _Process:
    """Run a program with some input in an interpreter of its own."""
    command, environment = [sys.executable, "-c", code], os.environ | _ONE_THREAD
    cpu, begin = _cpu_seconds_of_children(), perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=True, input=text, env=environment)
    return _Process(perf_counter() - begin, _cpu_seconds_of_children() - cpu, done.stdout)


def _cpu_seconds_of_children() -> float:
    """Return the processor time of all processes that this one has waited for."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime
