"""Comparison of schedules: the shardings of each, and their cost."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext

from shardy_py.api.keywords import takes
from shardy_py.cost.machines.toml import get_machine
from shardy_py.cost.priced_input import priced_input
from shardy_py.cost.sweeps.arguments import CompareArguments
from shardy_py.cost.sweeps.comparison import Comparison, choose_measure, make_comparison
from shardy_py.cost.sweeps.evaluator import Setting
from shardy_py.cost.sweeps.named_schedules import as_schedules, schedule_of
from shardy_py.cost.sweeps.random_schedules import choose_schedules
from shardy_py.cost.sweeps.sweep import Sweep, open_program


@takes(CompareArguments)
def compare_schedules(given: CompareArguments) -> Comparison:
    """Compare the results of several schedules.

    Each process prepares and compiles the program once; per schedule it is only solved and finished again. The result
    does not depend on how many processes there are.

    Raises:
        ShardyError: the module or an option is not valid, or the store is of another sweep.
    """
    measure = choose_measure(given.sorted_by, given.machine)
    session, make_source = open_program(priced_input(given, given.machine), given.options)
    schedules = as_schedules(given.schedules)
    chosen = choose_schedules(session, schedules, random=given.random, seed=given.seed, drop_entries=given.drop_entries)
    items = schedules.values() if isinstance(schedules, Mapping) else schedules or ()
    unknown = session.unknown_op_names(*map(schedule_of, items))
    machine = None if given.machine is None else get_machine(given.machine)
    sweep = Sweep(session, Setting(chosen[0], machine, given.axes, given.layout), make_source)
    with nullcontext() if given.store is None else sweep.open_store(given.store) as opened:
        outcomes = sweep.run(chosen, jobs=given.jobs, store=opened, progress=given.progress)
    problems = () if opened is None else opened.problems
    return make_comparison(
        outcomes, first=chosen[0].name, sorted_by=measure, warnings=(*session.warnings, *unknown, *problems)
    )
