"""Start-up times: importing the package, the help of the command line, and a whole ``shardy propagate``."""

from __future__ import annotations

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
    passmanager.PassManager.parse({PIPELINE!r}).run(module.operation)
    print(module)
"""
"""The same as the command does, by the C++ passes."""


@frozen
class Starts:
    """Medians of several fresh processes, in seconds.

    Args:
        import_seconds: ``import shardy_py``, once the interpreter runs.
        propagate_seconds: ``from shardy_py import propagate``, which imports the engine and all passes.
        help_seconds: ``shardy --help``, from start to end.
        interpreter_seconds: Of that, an interpreter that does nothing.
        command_seconds: ``shardy propagate`` of a program of one op, from start to end.
        script_seconds: A script that parses the same program, runs the C++ passes and prints.
    """

    import_seconds: float
    propagate_seconds: float
    help_seconds: float
    interpreter_seconds: float
    command_seconds: float
    script_seconds: float


def measure_starts(*, runs: int) -> Starts:
    """Start so many processes of each kind, alternately."""
    imports, engines, helps, nothing, commands, scripts = [], [], [], [], [], []
    for _ in range(runs):
        imports.append(_statement("import shardy_py"))
        engines.append(_statement("from shardy_py import propagate"))
        helps.append(_process(_HELP)[0])
        nothing.append(_process("pass")[0])
        commands.append(_process(_PROPAGATE, TINY)[0])
        scripts.append(_process(_SCRIPT, TINY)[0])
    return Starts(*map(median, (imports, engines, helps, nothing, commands, scripts)))


def _statement(statement: str) -> float:
    """Return the seconds of a statement in a fresh interpreter."""
    return float(_process(_TIMED.format(statement))[1])


def _process(code: str, given: str = "") -> tuple[float, str]:
    """Return the seconds that an interpreter took for a program with some input, and its output."""
    begin = perf_counter()
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, input=given)
    return perf_counter() - begin, done.stdout
