"""Run of a study: one sweep for each program, mesh and machine, with a store of its own.

A study that was stopped goes on from its stores. Where a process of a sweep is ended from outside, the sweep goes on
from what its store has, so that the table is the one that it would have been.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path

from shardy_py.cost.machines.toml import get_machine
from shardy_py.cost.priced_input import priced_input
from shardy_py.cost.session import Session
from shardy_py.cost.studies.settings import Study, StudyProgram
from shardy_py.cost.studies.table import Provenance, StudyOutcome, StudyTable, make_table
from shardy_py.cost.studies.xla_column import xla_bytes
from shardy_py.cost.sweeps.evaluator import Setting
from shardy_py.cost.sweeps.named_schedules import NamedSchedule
from shardy_py.cost.sweeps.random_schedules import choose_schedules, op_kinds, random_schedules
from shardy_py.cost.sweeps.sweep import Progress, Sweep, no_progress, open_program
from shardy_py.errors import Diagnostic, OptionError, WorkerError
from shardy_py.jax.like_jit import jaxlib_version

_ATTEMPTS = 3
"""Number of runs of a sweep whose processes are ended from outside."""


def run_study(
    study: Study, folder: str | Path, *, jobs: int | None = None, progress: Progress = no_progress
) -> StudyTable:
    """Return the table of a study.

    Args:
        study: What is studied.
        folder: The folder of the stores, from which a study that was stopped goes on.
        jobs: How many processes, see `compare_schedules`.
        progress: Called after each schedule of a sweep.

    Raises:
        ShardyError: a program or a setting is not valid, or processes are ended again and again.
    """
    stores = Path(folder)
    _refuse_equal_machines(study.machines)
    try:
        stores.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OptionError(Diagnostic("study", f"{stores}: the folder cannot be made: {error.strerror}")) from None
    outcomes: list[StudyOutcome] = []
    warnings: list[Diagnostic] = []
    for program, mesh, machine in study.combinations():
        outcomes += _run_sweep(study, program, mesh, machine, stores, jobs, progress, warnings)
    return make_table(outcomes, measure=study.measure, tie=study.tie, warnings=dict.fromkeys(warnings))


def _refuse_equal_machines(machines: Sequence[str]) -> None:
    """Check that machines have different names, by which the rows of a table are told apart.

    Raises:
        OptionError: two have the same.
    """
    first: dict[str, str] = {}
    for text in machines:
        name = get_machine(text).name
        if name in first:
            message = f"the machines {first[name]} and {text} are both named {name!r}"
            raise OptionError(Diagnostic("duplicate-machine", message, hint="give each a name of its own"))
        first[name] = text


def _run_sweep(
    study: Study,
    program: StudyProgram,
    mesh: Mapping[str, int] | None,
    machine: str | None,
    folder: Path,
    jobs: int | None,
    progress: Progress,
    warnings: list[Diagnostic],
) -> list[StudyOutcome]:
    """Return the outcomes of a program on a mesh and a machine, with where they come from; add to the warnings."""
    resolved_machine = None if machine is None else get_machine(machine)
    priced = priced_input(program.input(mesh), resolved_machine)
    session, make_source = open_program(priced, study.options)
    schedules, seeds = _schedules(study, session)
    warnings += (*session.warnings, *session.unknown_op_names(*_named_in_study(study)))
    sweep = Sweep(session, Setting(schedules[0], resolved_machine), make_source)
    meshes = session.problem.table.meshes.values()
    text = "; ".join(",".join(f"{axis.name}={axis.size}" for axis in item.axes) for item in meshes)
    provenance = Provenance(
        program=program.name,
        program_sha256=sha256(program.file.read_bytes()).hexdigest(),
        mesh=text,
        machine="" if resolved_machine is None else resolved_machine.name,
        profile="" if resolved_machine is None else resolved_machine.profile,
        shardy_py=version("shardy_py"),
        jaxlib=jaxlib_version(),
    )
    name = "-".join(filter(None, (program.name, text, Path(machine or "").stem)))
    path = folder / f"{re.sub(r'[^A-Za-z0-9=.,_-]', '_', name)}.jsonl"
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            with sweep.open_store(path) as store:
                outcomes = sweep.run(schedules, jobs=jobs, store=store, progress=progress)
                warnings += store.problems
            break
        except WorkerError:
            if attempt == _ATTEMPTS:
                raise
    sent: list[float | None] = [None] * len(schedules)
    if study.against_xla:
        key = f"{provenance.program_sha256} {provenance.jaxlib}"
        store_path = path.with_suffix(".xla.json")
        sent = xla_bytes(sweep.evaluator, priced, study.options, schedules, store_path, key=key, warnings=warnings)
    return [
        (provenance.of_schedule(outcome.schedule, seed), outcome, sent_bytes)
        for outcome, seed, sent_bytes in zip(outcomes, seeds, sent, strict=True)
    ]


def _schedules(study: Study, session: Session) -> tuple[Sequence[NamedSchedule], list[int | None]]:
    """Return the schedules of a study for a program, and the seed of each; None for those that were not drawn."""
    chosen = list(choose_schedules(session, _named_in_study(study), drop_entries=study.drop_entries))
    seeds: list[int | None] = [None] * len(chosen)
    for seed in study.seeds:
        drawn = random_schedules(op_kinds(session.problem), study.random, seed=seed)
        chosen += drawn
        seeds += [seed] * len(drawn)
    return chosen, seeds


def _named_in_study(study: Study) -> list[str | Path]:
    """Return the schedules that a study names, and the files that it has them in."""
    return [Path(name) if name.endswith(".toml") else name for name in study.schedules]
