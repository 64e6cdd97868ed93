"""How long it takes until something happens: importing the package, and the help of the command line."""

from __future__ import annotations

import subprocess
import sys
from statistics import median
from time import perf_counter

from attrs import frozen

_IMPORT = (
    "from time import perf_counter; begin = perf_counter(); import shardy_py; "
    "import sys; sys.stdout.write(repr(perf_counter() - begin))"
)
_HELP = "import sys; from shardy_py.cli.main import main; sys.argv = ['shardy', '--help']; main()"


@frozen
class Starts:
    """Medians of several fresh processes, in seconds.

    Args:
        import_seconds: ``import shardy_py``, once the interpreter runs.
        help_seconds: ``shardy --help``, from start to end.
        interpreter_seconds: Of that, an interpreter that does nothing.
    """

    import_seconds: float
    help_seconds: float
    interpreter_seconds: float


def measure_starts(*, runs: int) -> Starts:
    """Start so many processes of each kind, alternately."""
    imports, helps, nothing = [], [], []
    for _ in range(runs):
        imports.append(float(_process(_IMPORT)[1]))
        helps.append(_process(_HELP)[0])
        nothing.append(_process("pass")[0])
    return Starts(median(imports), median(helps), median(nothing))


def _process(code: str) -> tuple[float, str]:
    """Return how long an interpreter took for a program, and what that printed."""
    begin = perf_counter()
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return perf_counter() - begin, done.stdout
