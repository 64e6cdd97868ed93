"""Start-up times: importing the package, and the help of the command line."""

from __future__ import annotations

import subprocess
import sys
from statistics import median
from time import perf_counter

from attrs import frozen

_TIMED = (
    "from time import perf_counter; begin = perf_counter(); {}; "
    "import sys; sys.stdout.write(repr(perf_counter() - begin))"
)
_HELP = "import sys; from shardy_py.cli.main import main; sys.argv = ['shardy', '--help']; main()"


@frozen
class Starts:
    """Medians of several fresh processes, in seconds.

    Args:
        import_seconds: ``import shardy_py``, once the interpreter runs.
        propagate_seconds: ``from shardy_py import propagate``, which imports the engine and all passes.
        help_seconds: ``shardy --help``, from start to end.
        interpreter_seconds: Of that, an interpreter that does nothing.
    """

    import_seconds: float
    propagate_seconds: float
    help_seconds: float
    interpreter_seconds: float


def measure_starts(*, runs: int) -> Starts:
    """Start so many processes of each kind, alternately."""
    imports, engines, helps, nothing = [], [], [], []
    for _ in range(runs):
        imports.append(_statement("import shardy_py"))
        engines.append(_statement("from shardy_py import propagate"))
        helps.append(_process(_HELP)[0])
        nothing.append(_process("pass")[0])
    return Starts(median(imports), median(engines), median(helps), median(nothing))


def _statement(statement: str) -> float:
    """Return the seconds of a statement in a fresh interpreter."""
    return float(_process(_TIMED.format(statement))[1])


def _process(code: str) -> tuple[float, str]:
    """Return the seconds that an interpreter took for a program, and its output."""
    begin = perf_counter()
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return perf_counter() - begin, done.stdout
