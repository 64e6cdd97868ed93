"""Column of a study: the bytes that one device sends in the program that XLA compiles for host devices.

Schedules with the same shardings are compiled once. Numbers are kept in a file, for a study that
was stopped.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from shardy_py.api.options import ProgramInput
from shardy_py.api.program_source import SessionOptions
from shardy_py.cli.session import GivenProgram
from shardy_py.cost.commands.against_xla import xla_figures
from shardy_py.cost.sweeps.evaluator import SessionEvaluator
from shardy_py.cost.sweeps.named_schedules import NamedSchedule
from shardy_py.errors import Diagnostic, OptionError, ShardyError
from shardy_py.support.files import write_atomically


def xla_bytes(
    evaluator: SessionEvaluator,
    program: ProgramInput,
    options: SessionOptions,
    schedules: Sequence[NamedSchedule],
    store: Path,
    *,
    key: str,
    warnings: list[Diagnostic],
) -> list[float | None]:
    """Return the bytes that one device sends in XLA's program for each schedule; None where XLA refuses it.

    Args:
        evaluator: What tells which schedules lead to the same shardings.
        program: The program.
        options: How it is propagated.
        schedules: The schedules.
        store: The file of the numbers that are known; what was refused is tried again by the next run.
        key: What the numbers depend on besides the shardings: the digest of the program, the version of jaxlib.
        warnings: Gets why XLA refuses a program.

    Raises:
        OptionError: JAX is not installed.
    """
    stored: dict[str, float] = json.loads(store.read_text(encoding="utf-8")) if store.is_file() else {}
    known: dict[str, float | None] = {**stored}
    given_program = GivenProgram(program, options)
    numbers = []
    for named in schedules:
        digest = f"{key} {evaluator.key(named)}"
        if digest not in known:
            known[digest] = _compile(given_program, named, warnings)
            compiled = {name: number for name, number in known.items() if number is not None}
            write_atomically(store, json.dumps(compiled, indent=1, sort_keys=True))
        numbers.append(known[digest])
    return numbers


def _compile(program: GivenProgram, named: NamedSchedule, warnings: list[Diagnostic]) -> float | None:
    try:
        return xla_figures(program, named.schedule).communication_bytes
    except OptionError:
        raise
    except ShardyError as error:
        warnings += error.diagnostics
        return None
