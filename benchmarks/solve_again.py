"""Solving a problem again that is compiled and was solved before."""

from __future__ import annotations

import gc
from time import perf_counter
from typing import Any

from attrs import frozen

from shardy_py.api.pipelines import PropagationPipeline
from shardy_py.frontends.mlir import import_module
from shardy_py.ir.garbage import no_garbage_collection
from shardy_py.ir.graph import Program
from shardy_py.ir.passes import PassContext
from shardy_py.ir.shardings import load_shardings
from shardy_py.propagation.compile import compile_program
from shardy_py.propagation.passes import UserPriorityPropagationPass
from shardy_py.propagation.schedule import DEFAULT
from shardy_py.propagation.schedules import BUILTIN
from shardy_py.propagation.solve import solve
from shardy_py.testing.conformance import reference_registry


@frozen
class SolvedAgain:
    """What solving took, in seconds.

    Args:
        first: With the default schedule, when nothing is known yet.
        again: Afterwards with other schedules, by name, one after the other.
    """

    first: float
    again: dict[str, float]


def solve_again(module: Any) -> SolvedAgain:
    """Prepare and compile a module, solve it with the default schedule, then with every other built-in one."""
    program = import_module(module)
    with no_garbage_collection():
        _prepare(program)
        problem = compile_program(program, reference_registry())
    gc.collect()
    times = {}
    for name, schedule in {"default": DEFAULT, **BUILTIN}.items():
        begin = perf_counter()
        with no_garbage_collection():
            solve(problem, schedule=schedule)
        times[name] = perf_counter() - begin
    return SolvedAgain(times.pop("default"), times)


def _prepare(program: Program) -> None:
    """Run the passes of the pipeline that come before propagation."""
    context = PassContext(reference_registry())
    load_shardings(program, context.semantics)
    for item in PropagationPipeline().passes:
        if isinstance(item, UserPriorityPropagationPass):
            return
        item.run(program, context)
