"""Column of a study: the bytes that one device sends in the program that XLA compiles for host devices.

Schedules with the same shardings are compiled once. Numbers are kept in a file, for a study that
was stopped.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

from shardy_py.api.options import ProgramInput
from shardy_py.api.program_source import SessionOptions
from shardy_py.cli.session import GivenProgram
from shardy_py.cost.commands.against_xla import xla_figures
from shardy_py.cost.session import Session
from shardy_py.cost.sweeps.named_schedules import NamedSchedule
from shardy_py.errors import ShardyError

Numbers = dict[str, float | None]


def xla_bytes(
    session: Session,
    program: ProgramInput,
    options: SessionOptions,
    schedules: Sequence[NamedSchedule],
    store: Path,
    *,
    key: str,
) -> list[float | None]:
    """Return the bytes that one device sends in XLA's program for each schedule; None where XLA refuses it.

    Args:
        session: The session of the program.
        program: The program.
        options: How it is propagated.
        schedules: The schedules.
        store: The file of the numbers that are known.
        key: What the numbers depend on besides the shardings: the digest of the program, the version of jaxlib.
    """
    known: Numbers = json.loads(store.read_text(encoding="utf-8")) if store.is_file() else {}
    numbers = []
    for named in schedules:
        shardings = session.solve(named.schedule).shardings
        digest = sha256(f"{key} {array('l', shardings).tobytes().hex()}".encode()).hexdigest()
        if digest not in known:
            known[digest] = _compile(GivenProgram(program, options), named)
            _write(store, known)
        numbers.append(known[digest])
    return numbers


def _compile(program: GivenProgram, named: NamedSchedule) -> float | None:
    try:
        return xla_figures(program, named.schedule).communication_bytes
    except ShardyError:  # the row says what the estimator makes of it
        return None


def _write(store: Path, known: Numbers) -> None:
    """Write the numbers; a study that is stopped meanwhile has the file before or the file after."""
    temporary = store.with_suffix(".tmp")
    temporary.write_text(json.dumps(known, indent=1, sort_keys=True), encoding="utf-8")
    temporary.replace(store)
